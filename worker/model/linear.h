/* Matrix products of the model on the rows of a rank. */
#ifndef WORKER_MODEL_LINEAR_H
#define WORKER_MODEL_LINEAR_H

#include "worker/model/parameters.h"

/* out[rows, out_width] = x[rows, in_width] W^T + beta out */
void wlb_linear(const struct wlb_parameters *parameters, void *out, const void *x, int tensor, int64_t rows,
                double beta);
/* The gradients of y = x W^T: adds to the gradient of W; d_x = d_out W + beta d_x. */
void wlb_linear_backward(const struct wlb_parameters *parameters, void *d_x, double beta, const void *d_out,
                         const void *x, int tensor, int64_t rows);

#endif

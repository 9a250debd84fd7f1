/* Matrix products with the parameters of a rank. */
#ifndef WORKER_MODEL_LINEAR_H
#define WORKER_MODEL_LINEAR_H

#include "worker/model/parameters.h"

/* Matrices of one input that lie one below the other in the flat buffers, and are multiplied as one. */
struct wlb_matrix {
	struct wlb_weight weight;
	void *gradient;             /* of type gradients */
	struct wlb_tensor *tensors; /* [count], owned by the parameters */
	int count;
};

/* The tensors `first` to `last`, which follow each other in the table and in the flat buffers. */
struct wlb_matrix wlb_matrix_of(const struct wlb_parameters *parameters, int first, int last);

/* y[n, out] = x[n, in] W^T + residual; residual has y's stride and may be NULL. */
void wlb_linear(struct wlb_device *device, void *y, int64_t y_stride, const void *x, const struct wlb_matrix *w,
                const void *residual, int64_t n);
/* The gradients of y = x W^T. d_x[n, in] = d_y[n, out] W, or is added to where `add` is 1. */
void wlb_linear_d_x(struct wlb_device *device, void *d_x, int add, const void *d_y, int64_t d_y_stride,
                    const struct wlb_matrix *w, int64_t n);
/* Adds d_y^T x to the gradient of W, or overwrites it where the step has not added to it. */
void wlb_linear_d_w(struct wlb_device *device, const void *d_y, int64_t d_y_stride, const void *x,
                    const struct wlb_matrix *w, int64_t n);

#endif

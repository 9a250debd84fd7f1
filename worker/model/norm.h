/* RMSNorm of the rows of one tensor-parallel rank. */
#ifndef WORKER_MODEL_NORM_H
#define WORKER_MODEL_NORM_H

#include "worker/model/activations.h"

/* Returns what the norms of the model's family add to their weights. */
static inline double wlb_norm_addend(const struct wlb_model *m)
{
	return wlb_family(m->family)->norms_add_one ? 1.0 : 0.0;
}

/* sum = x + residual, out[n / tp, h] = norm(sum), with the weight `tensor`; rstd[n / tp] is for the backward pass.
 * residual NULL: the sum is x, and `sum` is not used. sum may be x. */
void wlb_norm(struct wlb_transformer *transformer, void *out, void *rstd, void *sum, const void *x,
              const void *residual, int tensor, int64_t n);
/* Adds the gradient of x to d_x, and that of the weight to its gradient; d_out is the gradient of `out`. */
void wlb_norm_backward(struct wlb_transformer *transformer, void *d_x, const void *d_out, const void *x,
                       const void *rstd, int tensor, int64_t n);

#endif

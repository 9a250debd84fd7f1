#include "worker/model/norm.h"

#include "worker/model/gradients.h"

void wlb_norm(struct wlb_transformer *t, void *out, void *rstd, void *sum, const void *x, const void *residual,
              int tensor, int64_t n)
{
	const struct wlb_model *m = &t->parameters->shape;
	t->device->ops->rmsnorm_forward(t->device, out, rstd, sum, x, residual, wlb_weight(t->parameters, tensor),
	                                wlb_norm_addend(m), n / t->tp_size, m->hidden_size, m->rms_norm_eps);
}

void wlb_norm_backward(struct wlb_transformer *t, void *d_x, const void *d_out, const void *x, const void *rstd,
                       int tensor, int64_t n)
{
	const struct wlb_parameters *p = t->parameters;
	t->device->ops->rmsnorm_backward(t->device, d_x, wlb_gradient_to_add(p, tensor), d_out, x,
	                                 wlb_weight(p, tensor), wlb_norm_addend(&p->shape), rstd, n / t->tp_size,
	                                 p->shape.hidden_size);
}

#include "worker/model/tensor_parallel.h"

#include "worker/model/linear.h"

/* Returns the elements of a rank's share of n rows of the residual stream. */
static int64_t share_elements(const struct wlb_transformer *t, int64_t n)
{
	return n / t->tp_size * t->parameters->shape.hidden_size;
}

int wlb_tp_gather(struct wlb_transformer *t, const void *x, int64_t n, const void **all, struct wlb_error *error)
{
	*all = t->tp_size > 1 ? t->scratch.gathered : x;
	if (t->tp_size == 1)
		return 0;
	return wlb_comm_all_gather(t->tp, t->scratch.gathered, x, (size_t)share_elements(t, n), error);
}

void *wlb_tp_addend(struct wlb_transformer *t, void *out)
{
	return t->tp_size > 1 ? t->scratch.partial : out;
}

int wlb_tp_scatter(struct wlb_transformer *t, void *out, int64_t n, struct wlb_error *error)
{
	if (t->tp_size == 1)
		return 0;
	return wlb_comm_reduce_scatter(t->tp, out, t->scratch.partial, (size_t)share_elements(t, n), error);
}

int wlb_tp_linear_onto(struct wlb_transformer *t, void *out, const void *residual, const void *x, int tensor, int64_t n,
                       struct wlb_error *error)
{
	const struct wlb_ops *ops = t->device->ops;
	if (t->tp_size == 1) {
		ops->copy(t->device, out, residual, wlb_bytes(t, share_elements(t, n)));
		wlb_linear(t->parameters, out, x, tensor, n, 1.0);
		return 0;
	}
	wlb_linear(t->parameters, wlb_tp_addend(t, out), x, tensor, n, 0.0);
	if (wlb_tp_scatter(t, out, n, error) < 0)
		return -1;
	ops->add(t->device, out, residual, share_elements(t, n));
	return 0;
}

void wlb_tp_norm(struct wlb_transformer *t, void *out, void *rstd, const void *x, int tensor, int64_t n)
{
	const struct wlb_model *m = &t->parameters->shape;
	t->device->ops->rmsnorm_forward(t->device, out, rstd, x, wlb_weight(t->parameters, tensor), n / t->tp_size,
	                                m->hidden_size, m->rms_norm_eps);
}

void wlb_tp_norm_backward(struct wlb_transformer *t, void *d_x, const void *x, const void *rstd, int tensor, int64_t n)
{
	const struct wlb_parameters *p = t->parameters;
	t->device->ops->rmsnorm_backward(t->device, d_x, wlb_gradient(p, tensor), t->scratch.d_norm, x,
	                                 wlb_weight(p, tensor), rstd, n / t->tp_size, p->shape.hidden_size);
}

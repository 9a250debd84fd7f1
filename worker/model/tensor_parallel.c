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
	return wlb_comm_all_gather(t->tp, t->scratch.gathered, x, (size_t)share_elements(t, n), t->device->compute,
	                           error);
}

int wlb_tp_scatter(struct wlb_transformer *t, void *out, const void *addend, int64_t n, struct wlb_error *error)
{
	if (t->tp_size == 1)
		return 0;
	return wlb_comm_reduce_scatter(t->tp, out, addend, (size_t)share_elements(t, n), t->device->compute, error);
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
	wlb_linear(t->parameters, t->scratch.addend, x, tensor, n, 0.0);
	if (wlb_tp_scatter(t, out, t->scratch.addend, n, error) < 0)
		return -1;
	ops->add(t->device, out, residual, share_elements(t, n));
	return 0;
}

#include "worker/optimizer/optimizer.h"

#include <math.h>
#include <stdlib.h>

struct wlb_optimizer *wlb_optimizer_new(const struct wlb_parameters *p, const struct wlb_optimizer_options *options,
                                        struct wlb_error *error)
{
	struct wlb_optimizer *o = calloc(1, sizeof(*o));
	if (o == NULL) {
		wlb_fail(error, "out of memory for the optimizer");
		return NULL;
	}
	struct wlb_device *device = p->device;
	size_t bytes = p->elements * wlb_dtype_bytes(device->dtype);
	*o = (struct wlb_optimizer){.device = device, .options = *options, .elements = p->elements};
	o->m = device->ops->alloc(device, bytes, error);
	o->v = device->ops->alloc(device, bytes, error);
	o->sum_squares = device->ops->alloc(device, sizeof(double), error);
	if (o->m != NULL && o->v != NULL && o->sum_squares != NULL)
		return o;
	wlb_fail_in(error, "moments of the optimizer");
	wlb_optimizer_free(o);
	return NULL;
}

void wlb_optimizer_free(struct wlb_optimizer *o)
{
	if (o == NULL)
		return;
	o->device->ops->release(o->device, o->m);
	o->device->ops->release(o->device, o->v);
	o->device->ops->release(o->device, o->sum_squares);
	free(o);
}

static int gradient_norm(struct wlb_optimizer *o, const struct wlb_parameters *p, double *norm, struct wlb_error *error)
{
	const struct wlb_ops *ops = o->device->ops;
	double sum = 0.0;
	ops->zero(o->device, o->sum_squares, sizeof(sum));
	ops->sum_squares(o->device, o->sum_squares, p->gradients, (int64_t)p->elements);
	if (ops->synchronize(o->device, error) < 0)
		return -1;
	ops->to_host(o->device, &sum, o->sum_squares, sizeof(sum));
	*norm = sqrt(sum);
	if (isfinite(sum))
		return 0;
	return wlb_fail(error, "the gradients are not finite: lower --lr, or raise --lr-warmup-iters");
}

/* The elements [first, first + count) of every buffer. */
static void update(const struct wlb_optimizer *o, const struct wlb_parameters *p, size_t first, size_t count,
                   const struct wlb_adamw *settings)
{
	size_t skip = first * wlb_dtype_bytes(o->device->dtype);
	o->device->ops->adamw(o->device, (char *)p->weights + skip, (char *)p->gradients + skip, (char *)o->m + skip,
	                      (char *)o->v + skip, (int64_t)count, settings);
}

int wlb_optimizer_step(struct wlb_optimizer *o, const struct wlb_parameters *p, int64_t step, double lr,
                       double *grad_norm, struct wlb_error *error)
{
	if (gradient_norm(o, p, grad_norm, error) < 0)
		return -1;
	struct wlb_adamw settings = {
		.lr = lr,
		.beta1 = o->options.beta1,
		.beta2 = o->options.beta2,
		.epsilon = o->options.epsilon,
		.weight_decay = o->options.weight_decay,
		.grad_scale = 1.0,
		.step = step,
	};
	/* Megatron-LM's coefficient, with its guard against a norm of 0. */
	double coefficient = o->options.clip_grad / (*grad_norm + 1e-6);
	if (o->options.clip_grad > 0.0 && coefficient < 1.0)
		settings.grad_scale = coefficient;
	update(o, p, 0, p->matrices_elements, &settings);
	settings.weight_decay = 0.0;
	update(o, p, p->matrices_elements, p->elements - p->matrices_elements, &settings);
	return o->device->ops->synchronize(o->device, error);
}

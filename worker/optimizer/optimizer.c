#include "worker/optimizer/optimizer.h"

#include <math.h>
#include <stdlib.h>

#include "worker/optimizer/reduce.h"

struct wlb_optimizer {
	const struct wlb_parameters *parameters;
	const struct wlb_groups *groups;
	struct wlb_optimizer_options options;
	struct wlb_reduction reduction;
	void *moments[2]; /* of this rank's parts, laid out as the sums of the reduction */
	double *sum_squares;
};

/* Where this rank's part of a bucket lies. */
struct part {
	size_t elements;
	/* bytes from the start of */
	size_t in_weights;
	size_t in_gradients;
	size_t in_parts; /* moments and sums */
};

static struct part part_of(const struct wlb_optimizer *o, const struct wlb_bucket *bucket)
{
	const struct wlb_parameters *p = o->parameters;
	size_t elements = wlb_part_elements(p, bucket);
	size_t rank = (size_t)wlb_comm_rank(o->groups->data);
	return (struct part){
		.elements = elements,
		.in_weights = (bucket->offset + rank * elements) * wlb_dtype_bytes(p->device->compute),
		.in_gradients = (bucket->offset + rank * elements) * wlb_dtype_bytes(p->device->main),
		.in_parts = bucket->offset / (size_t)p->shards * wlb_dtype_bytes(p->device->main),
	};
}

static int allocate(struct wlb_optimizer *o, struct wlb_error *error)
{
	struct wlb_device *device = o->parameters->device;
	size_t elements = o->parameters->elements / (size_t)o->parameters->shards;
	o->sum_squares = device->ops->alloc(device, sizeof(double), error);
	if (o->sum_squares == NULL)
		return -1;
	for (int which = 0; which < 2; which++) {
		o->moments[which] = device->ops->alloc(device, elements * wlb_dtype_bytes(device->main), error);
		if (o->moments[which] == NULL)
			return wlb_fail_in(error, "moments of the optimizer");
	}
	return 0;
}

struct wlb_optimizer *wlb_optimizer_new(const struct wlb_parameters *p, const struct wlb_groups *groups,
                                        const struct wlb_optimizer_options *options, struct wlb_error *error)
{
	struct wlb_optimizer *o = calloc(1, sizeof(*o));
	if (o == NULL) {
		wlb_fail(error, "out of memory for the optimizer");
		return NULL;
	}
	*o = (struct wlb_optimizer){.parameters = p, .groups = groups, .options = *options};
	if (wlb_reduction_open(&o->reduction, p, groups, error) == 0 && allocate(o, error) == 0)
		return o;
	wlb_optimizer_free(o);
	return NULL;
}

void wlb_optimizer_free(struct wlb_optimizer *o)
{
	if (o == NULL)
		return;
	struct wlb_device *device = o->parameters->device;
	device->ops->release(device, o->moments[0]);
	device->ops->release(device, o->moments[1]);
	device->ops->release(device, o->sum_squares);
	wlb_reduction_close(&o->reduction);
	free(o);
}

void wlb_optimizer_begin(struct wlb_optimizer *o)
{
	const struct wlb_parameters *p = o->parameters;
	p->device->ops->zero(p->device, p->gradients, p->elements * wlb_dtype_bytes(p->device->main));
}

int wlb_optimizer_layer_done(void *optimizer, int chunk, int layer, struct wlb_error *error)
{
	struct wlb_optimizer *o = optimizer;
	return wlb_reduction_start(&o->reduction, chunk, layer, error);
}

int wlb_optimizer_chunk_done(struct wlb_optimizer *o, int chunk, struct wlb_error *error)
{
	return wlb_reduction_start(&o->reduction, chunk, -1, error);
}

/* Sets *norm to the global norm. Each element of the model counts once: on the rank that owns its part of the bucket,
 * among the ranks for which the bucket is `owned`. */
static int gradient_norm(struct wlb_optimizer *o, double *norm, struct wlb_error *error)
{
	const struct wlb_parameters *p = o->parameters;
	const struct wlb_ops *ops = p->device->ops;
	double sum = 0.0;
	ops->zero(p->device, o->sum_squares, sizeof(sum));
	for (int b = 0; b < p->bucket_count; b++) {
		struct part part = part_of(o, &p->buckets[b]);
		if (p->buckets[b].owned)
			ops->sum_squares(p->device, o->sum_squares, (const char *)o->reduction.sums + part.in_parts,
			                 (int64_t)part.elements);
	}
	if (ops->synchronize(p->device, error) < 0)
		return -1;
	ops->to_host(p->device, &sum, o->sum_squares, sizeof(sum));
	if (wlb_comm_all_reduce_double(o->groups->world, &sum, 1, WLB_SUM, error) < 0)
		return -1;
	*norm = sqrt(sum);
	return 0;
}

static void update(const struct wlb_optimizer *o, const struct wlb_adamw *settings)
{
	const struct wlb_parameters *p = o->parameters;
	for (int b = 0; b < p->bucket_count; b++) {
		struct part part = part_of(o, &p->buckets[b]);
		struct wlb_adamw adamw = *settings;
		if (p->buckets[b].kind == WLB_BUCKET_NORMS)
			adamw.weight_decay = 0.0;
		p->device->ops->adamw(p->device, (char *)p->weights + part.in_weights,
		                      (const char *)o->reduction.sums + part.in_parts,
		                      (char *)o->moments[0] + part.in_parts, (char *)o->moments[1] + part.in_parts,
		                      (int64_t)part.elements, &adamw);
	}
}

/* Gathers every rank's part of the weights on all ranks. */
static int gather_weights(const struct wlb_optimizer *o, struct wlb_error *error)
{
	const struct wlb_parameters *p = o->parameters;
	if (p->shards == 1)
		return 0;
	for (int b = 0; b < p->bucket_count; b++) {
		struct part part = part_of(o, &p->buckets[b]);
		char *weights = p->weights;
		char *bucket = weights + p->buckets[b].offset * wlb_dtype_bytes(p->device->compute);
		if (wlb_comm_all_gather(o->groups->data, bucket, weights + part.in_weights, part.elements,
		                        p->device->compute, error) < 0)
			return -1;
	}
	return 0;
}

int wlb_optimizer_step(struct wlb_optimizer *o, int64_t step, double lr, double *grad_norm, struct wlb_error *error)
{
	struct wlb_device *device = o->parameters->device;
	if (wlb_reduction_finish(&o->reduction, error) < 0 || gradient_norm(o, grad_norm, error) < 0)
		return -1;
	if (!isfinite(*grad_norm))
		return 1;
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
	update(o, &settings);
	if (gather_weights(o, error) < 0)
		return -1;
	return device->ops->synchronize(device, error);
}

int wlb_optimizer_drop_step(struct wlb_optimizer *o, struct wlb_error *error)
{
	return wlb_reduction_wait(&o->reduction, error);
}

int wlb_optimizer_gather_moments(struct wlb_optimizer *o, int which, struct wlb_error *error)
{
	const struct wlb_parameters *p = o->parameters;
	for (int b = 0; b < p->bucket_count; b++) {
		struct part part = part_of(o, &p->buckets[b]);
		char *bucket = (char *)p->gradients + p->buckets[b].offset * wlb_dtype_bytes(p->device->main);
		const char *own = (const char *)o->moments[which] + part.in_parts;
		if (wlb_comm_all_gather(o->groups->data, bucket, own, part.elements, p->device->main, error) < 0)
			return -1;
	}
	return 0;
}

void wlb_optimizer_store_moments(struct wlb_optimizer *o, int which)
{
	const struct wlb_parameters *p = o->parameters;
	for (int b = 0; b < p->bucket_count; b++) {
		struct part part = part_of(o, &p->buckets[b]);
		p->device->ops->copy(p->device, (char *)o->moments[which] + part.in_parts,
		                     (const char *)p->gradients + part.in_gradients,
		                     part.elements * wlb_dtype_bytes(p->device->main));
	}
}

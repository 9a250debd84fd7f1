#include "worker/optimizer/optimizer.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/bfloat16.h"
#include "worker/model/gathered_weights.h"
#include "worker/model/gradients.h"
#include "worker/optimizer/reduce.h"

struct wlb_optimizer {
	const struct wlb_parameters *parameters;
	const struct wlb_groups *groups;
	struct wlb_optimizer_options options;
	struct wlb_reduction reduction;
	/* Of this rank's parts, laid out as the sums of the reduction; of the masters their lower halves, and nothing
	 * where the weights are the masters. */
	void *states[WLB_STATES];
	/* The queue of updates, so that they run beside the forward pass of the next step, the moment from which it may
	 * go on, and those at which it has updated all buckets and each, [buckets]. */
	struct wlb_queue *queue;
	struct wlb_event *ready, *ended, **updated;
};

/* Where this rank's part of a bucket lies. */
struct part {
	size_t first; /* element of the flat buffers */
	size_t elements;
	size_t in_parts; /* element of states and sums */
};

static struct part part_of(const struct wlb_optimizer *o, const struct wlb_bucket *bucket)
{
	const struct wlb_parameters *p = o->parameters;
	size_t elements = wlb_part_elements(p, bucket);
	return (struct part){
		.first = bucket->offset + (size_t)wlb_comm_rank(o->groups->data) * elements,
		.elements = elements,
		.in_parts = bucket->offset / (size_t)p->shards,
	};
}

static void *elements_at(void *buffer, size_t element, enum wlb_dtype dtype)
{
	return (char *)buffer + element * wlb_dtype_bytes(dtype);
}

static int weights_are_masters(const struct wlb_optimizer *o)
{
	return o->parameters->device->compute == o->parameters->device->master;
}

/* A lower half of a master has the size of the weight, which is the other half. */
static enum wlb_dtype dtype_of(const struct wlb_optimizer *o, enum wlb_state state)
{
	const struct wlb_device *device = o->parameters->device;
	return state == WLB_STATE_MASTERS ? device->compute : device->master;
}

/* Returns that state of a part, on the device; of the masters their lower halves. */
static void *state_of(const struct wlb_optimizer *o, enum wlb_state state, const struct part *part)
{
	if (o->states[state] == NULL)
		return elements_at(o->parameters->weights, part->first, dtype_of(o, state));
	return elements_at(o->states[state], part->in_parts, dtype_of(o, state));
}

static int allocate(struct wlb_optimizer *o, struct wlb_error *error)
{
	static const char *const names[WLB_STATES] = {"master weights", "first moments", "second moments"};
	struct wlb_device *device = o->parameters->device;
	size_t elements = o->parameters->elements / (size_t)o->parameters->shards;
	for (int state = weights_are_masters(o) ? WLB_STATE_FIRST_MOMENTS : 0; state < WLB_STATES; state++) {
		o->states[state] = device->ops->alloc(device, elements * wlb_dtype_bytes(dtype_of(o, state)), error);
		if (o->states[state] == NULL)
			return wlb_fail_in(error, "%s of the optimizer", names[state]);
	}
	return 0;
}

static int make_queue(struct wlb_optimizer *o, struct wlb_error *error)
{
	struct wlb_device *device = o->parameters->device;
	const struct wlb_ops *ops = device->ops;
	int count = o->parameters->bucket_count;
	o->updated = calloc((size_t)count, sizeof(struct wlb_event *));
	if (o->updated == NULL)
		return wlb_fail(error, "out of memory for the optimizer");
	o->queue = ops->queue_new(device, 0, error);
	o->ready = o->queue != NULL ? ops->event_new(device, 0, error) : NULL;
	o->ended = o->ready != NULL ? ops->event_new(device, 0, error) : NULL;
	int made = 0;
	while (o->ended != NULL && made < count && (o->updated[made] = ops->event_new(device, 0, error)) != NULL)
		made++;
	return o->ended != NULL && made == count ? 0 : -1;
}

static void free_queue(struct wlb_optimizer *o)
{
	struct wlb_device *device = o->parameters->device;
	for (int b = 0; o->updated != NULL && b < o->parameters->bucket_count; b++)
		device->ops->event_free(device, o->updated[b]);
	device->ops->event_free(device, o->ended);
	device->ops->event_free(device, o->ready);
	device->ops->queue_free(device, o->queue);
	free(o->updated);
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
	if (wlb_reduction_open(&o->reduction, p, groups, error) == 0 && allocate(o, error) == 0 &&
	    make_queue(o, error) == 0)
		return o;
	wlb_optimizer_free(o);
	return NULL;
}

void wlb_optimizer_free(struct wlb_optimizer *o)
{
	if (o == NULL)
		return;
	struct wlb_device *device = o->parameters->device;
	struct wlb_error ignored = {0}; /* a communicator that fails is closed next */
	wlb_weights_await_all(o->parameters, &ignored);
	device->ops->synchronize(device, &ignored); /* then the queue has ended, too */
	free_queue(o);
	for (int state = 0; state < WLB_STATES; state++)
		device->ops->release(device, o->states[state]);
	wlb_reduction_close(&o->reduction);
	free(o);
}

void wlb_optimizer_begin(struct wlb_optimizer *o)
{
	wlb_gradients_begin(o->parameters);
}

int wlb_optimizer_begin_pass(struct wlb_optimizer *o, int is_last, struct wlb_error *error)
{
	return wlb_reduction_begin_pass(&o->reduction, is_last, error);
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

/* Adds the squares of the gradients to the sum. Each element of the model counts once: on the rank that owns its part
 * of the bucket, among the ranks for which the bucket is `owned`. */
static void sum_squares(const struct wlb_optimizer *o, double *sum)
{
	const struct wlb_parameters *p = o->parameters;
	p->device->ops->zero(p->device, sum, sizeof(*sum));
	for (int b = 0; b < p->bucket_count; b++) {
		struct part part = part_of(o, &p->buckets[b]);
		if (p->buckets[b].owned)
			p->device->ops->sum_squares(p->device, sum,
			                            elements_at(o->reduction.sums, part.in_parts, p->device->gradients),
			                            (int64_t)part.elements);
	}
}

static void update(const struct wlb_optimizer *o, int bucket, const struct wlb_adamw *settings, const double *factor)
{
	const struct wlb_parameters *p = o->parameters;
	struct part part = part_of(o, &p->buckets[bucket]);
	struct wlb_adamw adamw = *settings;
	adamw.queue = o->queue;
	if (!wlb_bucket_decays(p->buckets[bucket].kind))
		adamw.weight_decay = 0.0;
	p->device->ops->adamw(p->device, elements_at(p->weights, part.first, p->device->compute),
	                      state_of(o, WLB_STATE_MASTERS, &part),
	                      elements_at(o->reduction.sums, part.in_parts, p->device->gradients),
	                      state_of(o, WLB_STATE_FIRST_MOMENTS, &part), state_of(o, WLB_STATE_SECOND_MOMENTS, &part),
	                      (int64_t)part.elements, &adamw, factor);
}

/* Updates this rank's part of each bucket and gathers the weights of all ranks, the gather of a bucket beside the
 * update of the next, and both beside the next step. Buckets are in the order of the backward pass: the forward pass
 * needs the last one first. */
static int update_weights(const struct wlb_optimizer *o, const struct wlb_adamw *settings, const double *factor,
                          struct wlb_error *error)
{
	const struct wlb_parameters *p = o->parameters;
	/* A rank without tokens has read none of those of the step before. */
	if (wlb_weights_await_all(p, error) < 0)
		return -1;
	p->device->ops->event_record(p->device, o->ready, NULL);
	p->device->ops->queue_wait(p->device, o->queue, o->ready);
	for (int b = p->bucket_count - 1; b >= 0; b--) {
		update(o, b, settings, factor);
		if (wlb_weights_gather(p, o->groups, b, o->queue, o->updated[b], error) < 0)
			return -1;
	}
	p->device->ops->event_record(p->device, o->ended, o->queue);
	return 0;
}

int wlb_optimizer_step(struct wlb_optimizer *o, int64_t step, double lr, double most_norm, double *sums,
                       struct wlb_error *error)
{
	struct wlb_device *device = o->parameters->device;
	const struct wlb_adamw settings = {
		.lr = lr,
		.beta1 = o->options.beta1,
		.beta2 = o->options.beta2,
		.epsilon = o->options.epsilon,
		.weight_decay = o->options.weight_decay,
		.step = step,
	};
	if (wlb_reduction_finish(&o->reduction, error) < 0)
		return -1;
	sum_squares(o, sums + WLB_SUM_SQUARES);
	/* Two sums, which are neighbours. */
	if (wlb_comm_all_reduce(o->groups->world, sums, WLB_SUM_SQUARES + 1, WLB_FLOAT64, WLB_SUM, error) < 0)
		return -1;
	device->ops->clip_factor(device, sums + WLB_CLIP_FACTOR, sums + WLB_SUM_SQUARES, sums + WLB_SUM_LOSS,
	                         o->options.clip_grad, most_norm);
	return update_weights(o, &settings, sums + WLB_CLIP_FACTOR, error);
}

int wlb_optimizer_has_halves(const struct wlb_optimizer *o)
{
	return !weights_are_masters(o);
}

int wlb_optimizer_join(float *masters_host, size_t count, struct wlb_error *error)
{
	uint16_t *halves = malloc(2 * count * sizeof(*halves) + 1);
	if (halves == NULL)
		return wlb_fail(error, "out of memory for the masters of %zu parameters", count);
	memcpy(halves, masters_host, 2 * count * sizeof(*halves));
	for (size_t i = 0; i < count; i++)
		masters_host[i] = wlb_join_master((struct wlb_halves){halves[i], halves[count + i]});
	free(halves);
	return 0;
}

int wlb_optimizer_fetch(struct wlb_optimizer *o, struct wlb_queue *queue, enum wlb_state state, int tensor,
                        struct wlb_element_range elements, void *values_host, struct wlb_error *error)
{
	const struct wlb_parameters *p = o->parameters;
	struct wlb_device *device = p->device;
	const struct wlb_tensor *t = &p->tensors[tensor];
	struct part part = part_of(o, &p->buckets[t->bucket]);
	size_t first = t->offset + (size_t)elements.begin, count = (size_t)(elements.end - elements.begin);
	size_t bytes = count * wlb_dtype_bytes(dtype_of(o, state));
	char *values = values_host;
	if (wlb_weights_await_all(p, error) < 0)
		return -1;
	device->ops->queue_wait(device, queue, o->ended);
	if (state == WLB_STATE_MASTERS && !weights_are_masters(o)) {
		device->ops->to_host_start(device, queue, values, elements_at(p->weights, first, device->compute),
		                           bytes);
		values += bytes;
	}
	const void *kept = elements_at(state_of(o, state, &part), first - part.first, dtype_of(o, state));
	device->ops->to_host_start(device, queue, values, kept, bytes);
	return 0;
}

/* Copies what the elements of the flat buffers from `begin` to `end`, which are of one bucket, and this rank's part of
 * the bucket have in common; of the masters values_host has the lower halves. */
static void store_part(const struct wlb_optimizer *o, enum wlb_state state, int bucket, size_t begin, size_t end,
                       const void *values_host)
{
	struct wlb_device *device = o->parameters->device;
	struct part part = part_of(o, &o->parameters->buckets[bucket]);
	enum wlb_dtype dtype = dtype_of(o, state);
	size_t bytes = wlb_dtype_bytes(dtype), part_end = part.first + part.elements;
	size_t first = begin > part.first ? begin : part.first;
	size_t last = end < part_end ? end : part_end;
	if (first < last)
		device->ops->to_device(device, NULL, elements_at(state_of(o, state, &part), first - part.first, dtype),
		                       (const char *)values_host + (first - begin) * bytes, (last - first) * bytes);
}

static int store_lower_halves(const struct wlb_optimizer *o, int bucket, size_t begin, size_t end,
                              const float *masters_host, struct wlb_error *error)
{
	uint16_t *lower = malloc((end - begin) * sizeof(*lower) + 1);
	if (lower == NULL)
		return wlb_fail(error, "out of memory for the masters of %zu parameters", end - begin);
	for (size_t i = 0; i < end - begin; i++)
		lower[i] = wlb_split_master(masters_host[i]).lower;
	store_part(o, WLB_STATE_MASTERS, bucket, begin, end, lower);
	free(lower);
	return 0;
}

int wlb_optimizer_store(struct wlb_optimizer *o, enum wlb_state state, int tensor, const void *values_host,
                        struct wlb_error *error)
{
	const struct wlb_element_range all = {0, wlb_tensor_block_elements(&o->parameters->tensors[tensor].block)};
	return wlb_optimizer_store_range(o, state, tensor, all, values_host, error);
}

int wlb_optimizer_store_range(struct wlb_optimizer *o, enum wlb_state state, int tensor,
                              struct wlb_element_range elements, const void *values_host, struct wlb_error *error)
{
	const struct wlb_parameters *p = o->parameters;
	const struct wlb_tensor *t = &p->tensors[tensor];
	size_t begin = t->offset + (size_t)elements.begin, end = t->offset + (size_t)elements.end;
	if (wlb_weights_await_all(p, error) < 0)
		return -1;
	if (state == WLB_STATE_MASTERS && wlb_weight_set_range(p, tensor, elements, values_host, error) < 0)
		return -1;
	if (o->states[state] == NULL)
		return 0;
	if (state == WLB_STATE_MASTERS)
		return store_lower_halves(o, t->bucket, begin, end, values_host, error);
	store_part(o, state, t->bucket, begin, end, values_host);
	return 0;
}

int wlb_optimizer_share_weights(struct wlb_optimizer *o, struct wlb_error *error)
{
	for (int b = 0; b < o->parameters->bucket_count; b++)
		if (wlb_weights_gather(o->parameters, o->groups, b, NULL, o->updated[b], error) < 0)
			return -1;
	return wlb_weights_await_all(o->parameters, error);
}

#include "worker/optimizer/reduce.h"

#include <stdlib.h>
#include <string.h>

#include "worker/model/gathered_weights.h"
#include "worker/model/gradients.h"

size_t wlb_part_elements(const struct wlb_parameters *p, const struct wlb_bucket *bucket)
{
	return bucket->elements / (size_t)p->shards;
}

/* Returns the elements of the largest part that is added to sums; 0 where none is. */
static size_t added_elements(const struct wlb_parameters *p)
{
	size_t most = 0;
	for (int b = 0; b < p->bucket_count && p->micro_batches > 1; b++)
		if (p->buckets[b].is_passing && wlb_part_elements(p, &p->buckets[b]) > most)
			most = wlb_part_elements(p, &p->buckets[b]);
	return most;
}

static int allocate(struct wlb_reduction *r, struct wlb_error *error)
{
	struct wlb_device *device = r->parameters->device;
	size_t element_bytes = wlb_dtype_bytes(device->gradients), added = added_elements(r->parameters);
	size_t elements = r->parameters->elements / (size_t)r->parameters->shards;
	r->sums = device->ops->alloc(device, elements * element_bytes, error);
	if (r->sums != NULL && added > 0)
		r->part = device->ops->alloc(device, added * element_bytes, error);
	return r->sums != NULL && (r->part != NULL || added == 0)
	               ? 0
	               : wlb_fail_in(error, "reduced gradients of the optimizer");
}

int wlb_reduction_open(struct wlb_reduction *r, const struct wlb_parameters *p, const struct wlb_groups *groups,
                       struct wlb_error *error)
{
	*r = (struct wlb_reduction){.parameters = p, .groups = groups, .is_last_pass = 1, .passing = -1};
	r->requests = calloc((size_t)p->bucket_count, sizeof(struct wlb_comm_request *));
	r->has_sums = calloc((size_t)p->bucket_count, sizeof(*r->has_sums));
	if (r->requests == NULL || r->has_sums == NULL)
		return wlb_fail(error, "out of memory for the optimizer");
	if (p->shards > 1)
		return allocate(r, error);
	r->sums = p->gradients;
	return 0;
}

void wlb_reduction_close(struct wlb_reduction *r)
{
	const struct wlb_parameters *p = r->parameters;
	if (p != NULL && r->sums != p->gradients)
		p->device->ops->release(p->device, r->sums);
	if (p != NULL)
		p->device->ops->release(p->device, r->part);
	free(r->requests);
	free(r->has_sums);
	*r = (struct wlb_reduction){0};
}

/* Returns the address of the sums of this rank's part of a bucket. */
static void *sums_of(const struct wlb_reduction *r, const struct wlb_bucket *bucket)
{
	const struct wlb_parameters *p = r->parameters;
	return (char *)r->sums + bucket->offset / (size_t)p->shards * wlb_dtype_bytes(p->device->gradients);
}

static int wait_for(struct wlb_reduction *r, int bucket, struct wlb_error *error)
{
	struct wlb_comm_request *request = r->requests[bucket];
	r->requests[bucket] = NULL;
	return wlb_comm_wait(request, error);
}

/* Awaits the bucket that passes whose reduction is in progress, and adds its part to the sums. */
static int end_passing(struct wlb_reduction *r, struct wlb_error *error)
{
	const struct wlb_parameters *p = r->parameters;
	int number = r->passing;
	r->passing = -1;
	if (number < 0)
		return 0;
	if (wait_for(r, number, error) < 0)
		return -1;
	const struct wlb_bucket *bucket = &p->buckets[number];
	if (r->has_sums[number])
		p->device->ops->add_gradients(p->device, sums_of(r, bucket), r->part,
		                              (int64_t)wlb_part_elements(p, bucket));
	r->has_sums[number] = 1;
	return 0;
}

static int start_next(struct wlb_reduction *r, struct wlb_error *error)
{
	const struct wlb_parameters *p = r->parameters;
	int number = r->next++;
	const struct wlb_bucket *bucket = &p->buckets[number];
	if (!bucket->is_passing && !r->is_last_pass)
		return 0;
	/* A rank without tokens has not awaited the update that reads the sums of the step before. */
	if (wlb_weights_await_bucket(p, number, error) < 0)
		return -1;
	wlb_gradients_complete(p, number);
	if (p->shards == 1)
		return 0;
	if (bucket->is_passing && end_passing(r, error) < 0)
		return -1;
	const char *gradients =
		(const char *)p->gradients + bucket->gradient_offset * wlb_dtype_bytes(p->device->gradients);
	r->requests[number] =
		wlb_comm_reduce_scatter_start(r->groups->data, r->has_sums[number] ? r->part : sums_of(r, bucket),
	                                      gradients, wlb_part_elements(p, bucket), p->device->gradients, error);
	if (bucket->is_passing) {
		r->passing = number;
		wlb_gradients_pass(p, number);
	}
	return r->requests[number] != NULL ? 0 : -1;
}

int wlb_reduction_begin_pass(struct wlb_reduction *r, int is_last, struct wlb_error *error)
{
	if (!r->is_last_pass) /* the pass before was of the same chunk */
		r->next = 0;
	r->is_last_pass = is_last;
	return end_passing(r, error);
}

int wlb_reduction_start(struct wlb_reduction *r, int chunk, int layer, struct wlb_error *error)
{
	const struct wlb_parameters *p = r->parameters;
	while (r->next < p->bucket_count && wlb_bucket_is_complete(&p->buckets[r->next], chunk, layer))
		if (start_next(r, error) < 0)
			return -1;
	wlb_comm_progress(r->groups->data);
	return 0;
}

/* Returns the group of the second reduction; NULL where only the ranks of the data group add to a bucket. */
static struct wlb_comm *other_group(const struct wlb_groups *groups, enum wlb_bucket_kind kind)
{
	switch (kind) {
	case WLB_BUCKET_NORMS:
		return groups->tp;
	case WLB_BUCKET_KV:
	case WLB_BUCKET_KV_VECTORS:
		return groups->kv;
	case WLB_BUCKET_TIED:
		return groups->tied;
	case WLB_BUCKET_MATRICES:
	case WLB_BUCKET_VECTORS:
		break;
	}
	return NULL;
}

int wlb_reduction_wait(struct wlb_reduction *r, struct wlb_error *error)
{
	int count = r->parameters->bucket_count;
	if (end_passing(r, error) < 0)
		return -1;
	for (int b = 0; b < count; b++)
		if (wait_for(r, b, error) < 0)
			return -1;
	r->next = 0;
	r->is_last_pass = 1;
	memset(r->has_sums, 0, (size_t)count);
	return 0;
}

int wlb_reduction_finish(struct wlb_reduction *r, struct wlb_error *error)
{
	const struct wlb_parameters *p = r->parameters;
	while (r->next < p->bucket_count)
		if (start_next(r, error) < 0)
			return -1;
	if (wlb_reduction_wait(r, error) < 0)
		return -1;
	for (int b = 0; b < p->bucket_count; b++) {
		const struct wlb_bucket *bucket = &p->buckets[b];
		struct wlb_comm *group = other_group(r->groups, bucket->kind);
		if (group != NULL && wlb_comm_size(group) > 1 &&
		    wlb_comm_all_reduce(group, sums_of(r, bucket), wlb_part_elements(p, bucket), p->device->gradients,
		                        WLB_SUM, error) < 0)
			return -1;
	}
	return 0;
}

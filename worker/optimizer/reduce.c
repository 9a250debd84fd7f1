#include "worker/optimizer/reduce.h"

#include <stdlib.h>

#include "worker/model/gradients.h"

size_t wlb_part_elements(const struct wlb_parameters *p, const struct wlb_bucket *bucket)
{
	return bucket->elements / (size_t)p->shards;
}

int wlb_reduction_open(struct wlb_reduction *r, const struct wlb_parameters *p, const struct wlb_groups *groups,
                       struct wlb_error *error)
{
	*r = (struct wlb_reduction){.parameters = p, .groups = groups};
	r->requests = calloc((size_t)p->bucket_count, sizeof(struct wlb_comm_request *));
	if (r->requests == NULL)
		return wlb_fail(error, "out of memory for the optimizer");
	if (p->shards == 1) {
		r->sums = p->gradients;
		return 0;
	}
	size_t bytes = p->elements / (size_t)p->shards * wlb_dtype_bytes(p->device->gradients);
	r->sums = p->device->ops->alloc(p->device, bytes, error);
	return r->sums != NULL ? 0 : wlb_fail_in(error, "reduced gradients of the optimizer");
}

void wlb_reduction_close(struct wlb_reduction *r)
{
	const struct wlb_parameters *p = r->parameters;
	if (p != NULL && r->sums != p->gradients)
		p->device->ops->release(p->device, r->sums);
	free(r->requests);
	*r = (struct wlb_reduction){0};
}

/* Returns the address of the sums of this rank's part of a bucket. */
static void *sums_of(const struct wlb_reduction *r, const struct wlb_bucket *bucket)
{
	const struct wlb_parameters *p = r->parameters;
	return (char *)r->sums + bucket->offset / (size_t)p->shards * wlb_dtype_bytes(p->device->gradients);
}

static int start_next(struct wlb_reduction *r, struct wlb_error *error)
{
	const struct wlb_parameters *p = r->parameters;
	int number = r->started++;
	const struct wlb_bucket *bucket = &p->buckets[number];
	wlb_gradients_complete(p, number);
	if (p->shards == 1)
		return 0;
	const char *gradients = (const char *)p->gradients + bucket->offset * wlb_dtype_bytes(p->device->gradients);
	r->requests[number] = wlb_comm_reduce_scatter_start(r->groups->data, sums_of(r, bucket), gradients,
	                                                    wlb_part_elements(p, bucket), p->device->gradients, error);
	return r->requests[number] != NULL ? 0 : -1;
}

/* The backward passes of chunks and of their layers end in descending order, and so do the buckets. */
static int is_complete(const struct wlb_bucket *bucket, int chunk, int layer)
{
	return bucket->chunk > chunk || (bucket->chunk == chunk && bucket->layer >= layer);
}

int wlb_reduction_start(struct wlb_reduction *r, int chunk, int layer, struct wlb_error *error)
{
	const struct wlb_parameters *p = r->parameters;
	while (r->started < p->bucket_count && is_complete(&p->buckets[r->started], chunk, layer))
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
	for (int b = 0; b < r->started; b++) {
		struct wlb_comm_request *request = r->requests[b];
		r->requests[b] = NULL;
		if (wlb_comm_wait(request, error) < 0)
			return -1;
	}
	r->started = 0;
	return 0;
}

int wlb_reduction_finish(struct wlb_reduction *r, struct wlb_error *error)
{
	const struct wlb_parameters *p = r->parameters;
	while (r->started < p->bucket_count)
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

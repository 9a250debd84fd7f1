#include "worker/model/gathered_weights.h"

int wlb_weights_gather(const struct wlb_parameters *p, const struct wlb_groups *groups, int bucket,
                       struct wlb_queue *behind, struct wlb_event *updated, struct wlb_error *error)
{
	struct wlb_bucket *b = &p->buckets[bucket];
	enum wlb_dtype dtype = p->device->compute;
	size_t elements = b->elements / (size_t)p->shards;
	char *all = (char *)p->weights + b->offset * wlb_dtype_bytes(dtype);
	if (p->shards == 1) {
		p->device->ops->event_record(p->device, updated, behind);
		b->update = updated;
		return 0;
	}
	size_t own_bytes = (size_t)wlb_comm_rank(groups->data) * elements * wlb_dtype_bytes(dtype);
	return wlb_comm_all_gather_behind(groups->data, behind, all, all + own_bytes, elements, dtype, &b->gather,
	                                  error);
}

int wlb_weights_await_bucket(const struct wlb_parameters *p, int bucket, struct wlb_error *error)
{
	struct wlb_bucket *b = &p->buckets[bucket];
	struct wlb_comm_request *gather = b->gather;
	if (b->update != NULL)
		p->device->ops->queue_wait(p->device, NULL, b->update);
	b->gather = NULL;
	b->update = NULL;
	return wlb_comm_wait(gather, error);
}

int wlb_weights_await(const struct wlb_parameters *p, int first, int last, struct wlb_error *error)
{
	for (int i = first; i <= last; i++)
		if (wlb_weights_await_bucket(p, p->tensors[i].bucket, error) < 0)
			return -1;
	return 0;
}

int wlb_weights_await_all(const struct wlb_parameters *p, struct wlb_error *error)
{
	return wlb_weights_await(p, 0, p->count - 1, error);
}

#include "worker/model/context_parallel.h"

int wlb_cp_gather(struct wlb_transformer *t, void *kv_all, const void *kv, const struct wlb_micro_batch *batch,
                  struct wlb_error *error)
{
	if (t->cp_size == 1)
		return 0;
	void *ranks = t->scratch.kv_ranks;
	int64_t width = wlb_kv_width(t);
	if (wlb_comm_all_gather(t->cp, ranks, kv, (size_t)(2 * batch->rows * width), t->device->compute, error) < 0)
		return -1;
	t->device->ops->gather_rows(t->device, kv_all, ranks, batch->from_ranks, 2 * batch->tokens, width);
	return 0;
}

int wlb_cp_scatter(struct wlb_transformer *t, void *d_kv, const void *d_kv_all, const struct wlb_micro_batch *batch,
                   struct wlb_error *error)
{
	if (t->cp_size == 1)
		return 0;
	void *ranks = t->scratch.kv_ranks;
	int64_t width = wlb_kv_width(t), rows = 2 * batch->rows;
	t->device->ops->gather_rows(t->device, ranks, d_kv_all, batch->to_ranks, t->cp_size * rows, width);
	return wlb_comm_reduce_scatter(t->cp, d_kv, ranks, (size_t)(rows * width), t->device->compute, error);
}

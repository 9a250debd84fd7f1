#include "worker/model/context_parallel.h"

int wlb_cp_all_gather(struct wlb_transformer *t, void *kv_all, const void *kv, int64_t stride,
                      const struct wlb_micro_batch *batch, struct wlb_error *error)
{
	if (t->cp_size == 1)
		return 0;
	const struct wlb_ops *ops = t->device->ops;
	int64_t n = batch->rows, width = 2 * wlb_kv_width(t);
	void *ranks = t->scratch.kv_ranks;
	void *own = wlb_element(t->device->compute, ranks, wlb_comm_rank(t->cp) * n * width);
	ops->gather_rows(t->device, own, width, kv, stride, NULL, n, width);
	if (wlb_comm_all_gather(t->cp, ranks, own, (size_t)(n * width), t->device->compute, error) < 0)
		return -1;
	ops->gather_rows(t->device, kv_all, width, ranks, width, batch->from_ranks, batch->tokens, width);
	return 0;
}

int wlb_cp_reduce_scatter(struct wlb_transformer *t, void *d_kv, int64_t stride, void *d_kv_all,
                          const struct wlb_micro_batch *batch, struct wlb_error *error)
{
	if (t->cp_size == 1)
		return 0;
	const struct wlb_ops *ops = t->device->ops;
	int64_t n = batch->rows, width = 2 * wlb_kv_width(t);
	void *ranks = t->scratch.kv_ranks, *own = d_kv_all;
	ops->gather_rows(t->device, ranks, width, d_kv_all, width, batch->to_ranks, t->cp_size * n, width);
	if (wlb_comm_reduce_scatter(t->cp, own, ranks, (size_t)(n * width), t->device->compute, error) < 0)
		return -1;
	ops->gather_rows(t->device, d_kv, stride, own, width, NULL, n, width);
	return 0;
}

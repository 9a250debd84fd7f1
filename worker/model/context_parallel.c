#include "worker/model/context_parallel.h"

int wlb_cp_all_gather_start(struct wlb_transformer *t, const void *kv, int64_t stride,
                            const struct wlb_micro_batch *batch, struct wlb_comm_request **request,
                            struct wlb_error *error)
{
	*request = NULL;
	if (t->cp_size == 1)
		return 0;
	int64_t n = batch->rows, width = 2 * wlb_kv_width(t);
	void *ranks = t->scratch.kv_ranks;
	void *own = wlb_element(t->device->compute, ranks, wlb_comm_rank(t->cp) * n * width);
	t->device->ops->gather_rows(t->device, own, width, kv, stride, NULL, n, width);
	return wlb_comm_all_gather_overlapped(t->cp, ranks, own, (size_t)(n * width), t->device->compute, request,
	                                      error);
}

int wlb_cp_all_gather_await(struct wlb_transformer *t, void *kv_all, const struct wlb_micro_batch *batch,
                            struct wlb_comm_request *request, struct wlb_error *error)
{
	int64_t width = 2 * wlb_kv_width(t);
	if (wlb_comm_wait(request, error) < 0)
		return -1;
	if (t->cp_size > 1)
		t->device->ops->gather_rows(t->device, kv_all, width, t->scratch.kv_ranks, width, batch->from_ranks,
		                            batch->tokens, width);
	return 0;
}

int wlb_cp_reduce_scatter_start(struct wlb_transformer *t, void *d_kv_all, const struct wlb_micro_batch *batch,
                                struct wlb_comm_request **request, struct wlb_error *error)
{
	*request = NULL;
	if (t->cp_size == 1)
		return 0;
	int64_t n = batch->rows, width = 2 * wlb_kv_width(t);
	void *ranks = t->scratch.kv_ranks, *own = d_kv_all;
	t->device->ops->gather_rows(t->device, ranks, width, d_kv_all, width, batch->to_ranks, t->cp_size * n, width);
	return wlb_comm_reduce_scatter_overlapped(t->cp, own, ranks, (size_t)(n * width), t->device->compute, request,
	                                          error);
}

int wlb_cp_reduce_scatter_await(struct wlb_transformer *t, void *d_kv, int64_t stride, const void *d_kv_all,
                                const struct wlb_micro_batch *batch, struct wlb_comm_request *request,
                                struct wlb_error *error)
{
	int64_t width = 2 * wlb_kv_width(t);
	if (wlb_comm_wait(request, error) < 0)
		return -1;
	if (t->cp_size > 1)
		t->device->ops->gather_rows(t->device, d_kv, stride, d_kv_all, width, NULL, batch->rows, width);
	return 0;
}

#include "worker/model/tensor_parallel.h"

int wlb_tp_all_gather(struct wlb_transformer *t, void *out, const void *x, int64_t n, struct wlb_error *error)
{
	if (t->tp_size == 1)
		return 0;
	return wlb_comm_all_gather(t->tp, out, x, (size_t)wlb_share_elements(t, n), t->device->compute, error);
}

int wlb_tp_reduce_scatter(struct wlb_transformer *t, void *out, const void *x, int64_t n, struct wlb_error *error)
{
	if (t->tp_size == 1)
		return 0;
	return wlb_comm_reduce_scatter(t->tp, out, x, (size_t)wlb_share_elements(t, n), t->device->compute, error);
}

int wlb_tp_all_gather_start(struct wlb_transformer *t, void *out, const void *x, int64_t n,
                            struct wlb_comm_request **request, struct wlb_error *error)
{
	*request = NULL;
	if (t->tp_size == 1)
		return 0;
	return wlb_comm_all_gather_overlapped(t->tp, out, x, (size_t)wlb_share_elements(t, n), t->device->compute,
	                                      request, error);
}

int wlb_tp_reduce_scatter_start(struct wlb_transformer *t, void *out, const void *x, int64_t n,
                                struct wlb_comm_request **request, struct wlb_error *error)
{
	*request = NULL;
	if (t->tp_size == 1)
		return 0;
	return wlb_comm_reduce_scatter_overlapped(t->tp, out, x, (size_t)wlb_share_elements(t, n), t->device->compute,
	                                          request, error);
}

#include "worker/model/tensor_parallel.h"

struct wlb_tp_pieces wlb_tp_pieces_of(const struct wlb_micro_batch *batch)
{
	int64_t first = batch->second_half;
	if (first == 0)
		return (struct wlb_tp_pieces){1, {{0, batch->rows}}};
	return (struct wlb_tp_pieces){2, {{0, first}, {first, batch->rows - first}}};
}

/* Returns the address of a row of x[rows, h]. */
static void *row_of(const struct wlb_transformer *t, const void *x, int64_t row)
{
	return wlb_element(t->device->compute, (void *)x, row * t->parameters->shape.hidden_size);
}

int wlb_tp_all_gather_start(struct wlb_transformer *t, void *out, const void *x, struct wlb_tp_piece piece,
                            struct wlb_comm_request **request, struct wlb_error *error)
{
	*request = NULL;
	if (t->tp_size == 1)
		return 0;
	return wlb_comm_all_gather_overlapped(
		t->tp, row_of(t, out, piece.first), row_of(t, x, piece.first / t->tp_size),
		(size_t)wlb_share_elements(t, piece.count), t->device->compute, request, error);
}

int wlb_tp_reduce_scatter_start(struct wlb_transformer *t, void *out, const void *x, struct wlb_tp_piece piece,
                                struct wlb_comm_request **request, struct wlb_error *error)
{
	*request = NULL;
	if (t->tp_size == 1)
		return 0;
	return wlb_comm_reduce_scatter_overlapped(t->tp, row_of(t, out, piece.first / t->tp_size),
	                                          row_of(t, x, piece.first), (size_t)wlb_share_elements(t, piece.count),
	                                          t->device->compute, request, error);
}

int wlb_tp_all_gather(struct wlb_transformer *t, void *out, const void *x, const struct wlb_tp_pieces *pieces,
                      struct wlb_error *error)
{
	struct wlb_comm_request *request;
	for (int i = 0; i < pieces->count; i++)
		if (wlb_tp_all_gather_start(t, out, x, pieces->piece[i], &request, error) < 0 ||
		    wlb_comm_wait(request, error) < 0)
			return -1;
	return 0;
}

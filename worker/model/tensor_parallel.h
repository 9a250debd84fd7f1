/*
 * The collectives of sequence parallelism (Korthikanti et al. 2022): a tensor-parallel rank holds a share of the rows,
 * and a matrix needs all rows. Rows are gathered before a matrix that is cut by its outputs, and summed and scattered
 * after a matrix that is cut by its inputs.
 *
 * The rows of a micro-batch move in one piece or, so that one half's collective runs beside the products of the other,
 * in two halves: wlb_micro_batch.second_half. A rank has its share of each piece, one after the other.
 *
 * n rows of the micro-batch, h hidden size. Where tp is 1, a rank's rows are all rows: both are one buffer
 * (wlb_tp_rows), and the collectives do nothing. They return -1 where the transport failed.
 *
 * A collective that is started overlaps with what follows, over a transport that advances by itself; *request is to be
 * awaited (wlb_comm_wait) before the buffers are used again, and is NULL where there is nothing to await.
 */
#ifndef WORKER_MODEL_TENSOR_PARALLEL_H
#define WORKER_MODEL_TENSOR_PARALLEL_H

#include "worker/model/activations.h"

/* Returns the buffer for the rows of all ranks: `all`; where tp is 1, the buffer of this rank's rows, `own`. */
static inline void *wlb_tp_rows(const struct wlb_transformer *t, void *all, void *own)
{
	return t->tp_size > 1 ? all : own;
}

/* The pieces of a micro-batch's rows: the same on all tensor-parallel ranks and stages. */
struct wlb_tp_pieces wlb_tp_pieces_of(const struct wlb_micro_batch *batch);

/* Of a piece of `count` rows from `first` on, in buffers of the whole micro-batch: out[n, h] = every rank's
 * x[n / tp, h], in rank order. */
int wlb_tp_all_gather_start(struct wlb_transformer *transformer, void *out, const void *x, struct wlb_tp_piece piece,
                            struct wlb_comm_request **request, struct wlb_error *error);
/* Likewise: out[n / tp, h] = this rank's rows of the sum of every rank's x[n, h]. */
int wlb_tp_reduce_scatter_start(struct wlb_transformer *transformer, void *out, const void *x,
                                struct wlb_tp_piece piece, struct wlb_comm_request **request, struct wlb_error *error);

/* Gathers all pieces, and awaits them. */
int wlb_tp_all_gather(struct wlb_transformer *transformer, void *out, const void *x, const struct wlb_tp_pieces *pieces,
                      struct wlb_error *error);

#endif

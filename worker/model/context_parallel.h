/*
 * The collectives of context parallelism: before attention the keys and values of a document's ranks are gathered and
 * put in document order; after it the gradients are returned to the ranks of the keys and values, and are summed there
 * (Llama 3, Dubey et al. 2024). A row holds a token's keys, then its values: one index for each token suffices, and
 * half as many rows of twice the width are gathered. A micro-batch has an exchange for each group whose ranks share
 * documents of it; without exchanges attention reads the rank's own rows and writes their gradients, and these
 * functions do nothing. They return -1 where a collective failed.
 *
 * The exchanges of a micro-batch are started and awaited together, one such set at a time. They overlap with the
 * operations between start and wait, over a transport that advances by itself. All ranks start them in the order of the
 * micro-batch, the widest group first: groups lie within each other, so no two ranks wait for each other.
 */
#ifndef WORKER_MODEL_CONTEXT_PARALLEL_H
#define WORKER_MODEL_CONTEXT_PARALLEL_H

#include "worker/model/activations.h"

/* kv_all[tokens, 2 kv] = the rows of every rank's kv[n, 2 kv] in document order. `stride`: of kv's rows, which may
 * change once it is started. */
int wlb_cp_all_gather_start(struct wlb_transformer *transformer, const void *kv, int64_t stride,
                            const struct wlb_micro_batch *batch, struct wlb_error *error);
int wlb_cp_all_gather_await(struct wlb_transformer *transformer, void *kv_all, const struct wlb_micro_batch *batch,
                            struct wlb_error *error);

/* The reverse for gradients: d_kv[n, 2 kv] = this rank's rows of the sum of every rank's d_kv_all[tokens, 2 kv], whose
 * contents are undefined once it is started. `stride`: of d_kv's rows. Rows in no exchange are unchanged. */
int wlb_cp_reduce_scatter_start(struct wlb_transformer *transformer, void *d_kv_all,
                                const struct wlb_micro_batch *batch, struct wlb_error *error);
int wlb_cp_reduce_scatter_await(struct wlb_transformer *transformer, void *d_kv, int64_t stride, void *d_kv_all,
                                const struct wlb_micro_batch *batch, struct wlb_error *error);

#endif

/*
 * The communication of context parallelism: before attention the keys and values of all ranks are gathered and put in
 * document order; after it the gradients are returned to the ranks of the keys and values, and are summed there (Llama
 * 3, Dubey et al. 2024). Where cp is 1 nothing is copied.
 */
#ifndef WORKER_MODEL_CONTEXT_PARALLEL_H
#define WORKER_MODEL_CONTEXT_PARALLEL_H

#include "worker/model/activations.h"

/* kv_all[2, tokens, kv] = the rows of every rank's kv[2, n, kv] in document order. Where cp is 1, kv_all must be kv.
 * Returns -1 where the collective failed, as below. */
int wlb_cp_gather(struct wlb_transformer *transformer, void *kv_all, const void *kv,
                  const struct wlb_micro_batch *batch, struct wlb_error *error);
/* The reverse for gradients: d_kv[2, n, kv] = this rank's rows of the sum of every rank's d_kv_all[2, tokens, kv]. */
int wlb_cp_scatter(struct wlb_transformer *transformer, void *d_kv, const void *d_kv_all,
                   const struct wlb_micro_batch *batch, struct wlb_error *error);

#endif

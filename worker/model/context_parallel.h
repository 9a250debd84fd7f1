/*
 * Attention over the tokens of all context-parallel ranks: their keys and values are gathered before it and put in
 * document order; the gradients are returned to the ranks of the keys and values, and are summed there (Llama 3, Dubey
 * et al. 2024). Where cp is 1 nothing is copied.
 */
#ifndef WORKER_MODEL_CONTEXT_PARALLEL_H
#define WORKER_MODEL_CONTEXT_PARALLEL_H

#include "worker/model/activations.h"

/* From every rank's kv[2, n, kv] to kv_all[2, tokens, kv]. Returns -1 where the collective failed. */
int wlb_cp_gather(struct wlb_transformer *transformer, const struct wlb_layer_activations *activations,
                  const struct wlb_micro_batch *batch, struct wlb_error *error);
/* The reverse for gradients: from every rank's scratch.d_kv_all to scratch.d_kv. */
int wlb_cp_scatter(struct wlb_transformer *transformer, const struct wlb_micro_batch *batch, struct wlb_error *error);

/* Attention of this rank's queries to all keys. The outputs and gradients of padding rows are set to 0: no segment
 * covers these rows, and values of uninitialized memory must not reach other rows. */
void wlb_cp_attention(struct wlb_transformer *transformer, const struct wlb_layer_activations *activations,
                      const struct wlb_micro_batch *batch);
/* From scratch.d_attention to scratch.d_q and scratch.d_kv_all. */
void wlb_cp_attention_backward(struct wlb_transformer *transformer, const struct wlb_layer_activations *activations,
                               const struct wlb_micro_batch *batch);

#endif

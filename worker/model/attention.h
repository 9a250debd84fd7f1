/*
 * Attention of this rank's queries to the keys of all context-parallel ranks. Outputs and gradients of padding rows are
 * set to 0: no segment covers these rows, and values of uninitialized memory must not reach other rows.
 */
#ifndef WORKER_MODEL_ATTENTION_H
#define WORKER_MODEL_ATTENTION_H

#include "worker/model/activations.h"

/* From q and kv_all to attention and lse. */
void wlb_attention(struct wlb_transformer *transformer, const struct wlb_layer_activations *activations,
                   const struct wlb_micro_batch *batch);
/* From scratch.d_attention to scratch.d_q and scratch.d_kv_all. */
void wlb_attention_backward(struct wlb_transformer *transformer, const struct wlb_layer_activations *activations,
                            const struct wlb_micro_batch *batch);

#endif

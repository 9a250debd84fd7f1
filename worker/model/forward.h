/* The two halves of a layer's forward pass; recomputation runs them again. They return -1 where a collective failed. */
#ifndef WORKER_MODEL_FORWARD_H
#define WORKER_MODEL_FORWARD_H

#include "worker/model/activations.h"

/* middle = input + attention(norm(input)), and all activations between */
int wlb_attention_half(struct wlb_transformer *transformer, const struct wlb_layer_tensors *tensors,
                       const struct wlb_layer_activations *activations, const struct wlb_micro_batch *batch,
                       struct wlb_error *error);
/* activated = silu(gate(norm(middle))) * up(norm(middle)), and all activations between: the MLP without its last
 * matrix. */
int wlb_mlp_inner(struct wlb_transformer *transformer, const struct wlb_layer_tensors *tensors,
                  const struct wlb_layer_activations *activations, const struct wlb_micro_batch *batch,
                  struct wlb_error *error);

#endif

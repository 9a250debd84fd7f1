/*
 * Computes again the activations that the backward pass of a layer needs and the forward pass did not keep. The
 * operations and their inputs are the same, and so are the bits. The functions return -1 where a collective failed.
 */
#ifndef WORKER_MODEL_RECOMPUTE_H
#define WORKER_MODEL_RECOMPUTE_H

#include "worker/model/activations.h"

/* To be called before the backward pass of a layer's MLP, and before wlb_recompute_attention, since whole layers are
 * computed again here. */
int wlb_recompute_mlp(struct wlb_transformer *transformer, const struct wlb_layer_tensors *tensors,
                      const struct wlb_layer_activations *activations, const struct wlb_micro_batch *batch,
                      struct wlb_error *error);
/* To be called before the backward pass of the layer's attention. */
int wlb_recompute_attention(struct wlb_transformer *transformer, const struct wlb_layer_tensors *tensors,
                            const struct wlb_layer_activations *activations, const struct wlb_micro_batch *batch,
                            struct wlb_error *error);

#endif

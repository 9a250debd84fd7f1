/*
 * What the backward pass of a layer needs and the forward pass did not keep, computed again by the same operations on
 * the same numbers: the same bits. -1 where a collective failed.
 */
#ifndef WORKER_MODEL_RECOMPUTE_H
#define WORKER_MODEL_RECOMPUTE_H

#include "worker/model/activations.h"

/* Before the backward pass of a layer's MLP; in that order, since whole layers are computed again here. */
int wlb_recompute_mlp(struct wlb_transformer *transformer, const struct wlb_layer_tensors *tensors,
                      const struct wlb_layer_activations *activations, const struct wlb_micro_batch *batch,
                      struct wlb_error *error);
/* Before the backward pass of its attention. */
int wlb_recompute_attention(struct wlb_transformer *transformer, const struct wlb_layer_tensors *tensors,
                            const struct wlb_layer_activations *activations, const struct wlb_micro_batch *batch,
                            struct wlb_error *error);

#endif

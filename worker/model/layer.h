/* One layer's forward and backward pass. The functions return -1 where a collective failed. */
#ifndef WORKER_MODEL_LAYER_H
#define WORKER_MODEL_LAYER_H

#include "worker/model/activations.h"

/* out[n / tp, h] = the layer of activations->input; keeps in `activations` what the backward pass needs. `before` and
 * `next` are its neighbours in the pass, NULL of the first and the last. Where `next` is not NULL, `out` is its input,
 * of which the sum of the last piece is under way on return, and the other on its way to the tensor-parallel ranks; so
 * the weight of its first norm must be there. */
int wlb_layer_forward(struct wlb_transformer *transformer, const struct wlb_layer *layer,
                      const struct wlb_layer *before, const struct wlb_layer *next, void *out,
                      const struct wlb_micro_batch *batch, struct wlb_error *error);

/* d_residual[n / tp, h]: the gradient of the layer's output is replaced by that of its input, which is on its way
 * likewise where `next`, the layer before, recomputes less than the whole layer, or where it is the embedding's. Adds
 * to the gradients of the layer's parameters, and to that of the last norm of `next` where it has one after its MLP.
 * What the forward pass did not keep is computed again by the same operations from the same inputs, so that
 * recomputation changes no bit. */
int wlb_layer_backward(struct wlb_transformer *transformer, const struct wlb_layer *layer, const struct wlb_layer *next,
                       void *d_residual, const struct wlb_micro_batch *batch, struct wlb_error *error);

#endif

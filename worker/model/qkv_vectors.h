/* What some families do to queries, keys and values after their product: biases, and norms of queries and keys. */
#ifndef WORKER_MODEL_QKV_VECTORS_H
#define WORKER_MODEL_QKV_VECTORS_H

#include "worker/model/activations.h"

/* Parts of qkv. */
enum wlb_qkv { WLB_QUERIES = 1, WLB_KEYS_AND_VALUES = 2, WLB_QKV = WLB_QUERIES | WLB_KEYS_AND_VALUES };

/* On these parts of a piece of the rows of activations->qkv, in place; keeps what the backward pass needs. Both return
 * -1 where a collective failed: norms of all heads together are of all tensor-parallel ranks. */
int wlb_qkv_vectors(struct wlb_transformer *transformer, const struct wlb_layer_tensors *tensors,
                    const struct wlb_layer_activations *activations, enum wlb_qkv parts, struct wlb_tp_piece piece,
                    struct wlb_error *error);
/* Replaces those rows of d_qkv, the gradient of the result, by that of the product; adds to the gradients of biases and
 * norms. */
int wlb_qkv_vectors_backward(struct wlb_transformer *transformer, const struct wlb_layer_tensors *tensors,
                             const struct wlb_layer_activations *activations, void *d_qkv, struct wlb_tp_piece piece,
                             struct wlb_error *error);

#endif

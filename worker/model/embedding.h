/* The embedding; each tensor-parallel rank holds a slice of the vocabulary. The functions return -1 where a collective
 * failed. */
#ifndef WORKER_MODEL_EMBEDDING_H
#define WORKER_MODEL_EMBEDDING_H

#include "worker/model/activations.h"

/* out[n / tp, h] = the rows of batch->ids */
int wlb_embedding(struct wlb_transformer *transformer, void *out, const struct wlb_micro_batch *batch,
                  struct wlb_error *error);
/* d_out[n / tp, h] is the gradient of out. */
int wlb_embedding_backward(struct wlb_transformer *transformer, const void *d_out, const struct wlb_micro_batch *batch,
                           struct wlb_error *error);

#endif

/*
 * The gradients of a step. Nothing sets all of them to 0 before its passes, which would write as many bytes as they
 * have: the first product of a matrix overwrites its gradient (linear.h), another tensor's is zeroed before something
 * is added to it, and what no pass has added to is zeroed before it is summed over the ranks. With ZeRO stage 2 this
 * holds of each pass for the buckets that are reduced after it (wlb_bucket.is_passing). The state is that of the
 * host, in the order in which it queues operations on the device's compute queue.
 */
#ifndef WORKER_MODEL_GRADIENTS_H
#define WORKER_MODEL_GRADIENTS_H

#include "worker/model/parameters.h"

/* Begins a step. The contents of all gradients are undefined until something is added to them. */
void wlb_gradients_begin(const struct wlb_parameters *parameters);

/* Returns the gradient of a tensor, to be added to: it is zeroed where the step has not added to it. */
void *wlb_gradient_to_add(const struct wlb_parameters *parameters, int tensor);

/* Zeroes the gradients of a bucket that the step has not added to, or of one that passes the pass. */
void wlb_gradients_complete(const struct wlb_parameters *parameters, int bucket);

/* The gradients of a bucket that passes, which are complete, are reduced: its memory is for other buckets, and what the
 * next pass adds to them are new ones. */
void wlb_gradients_pass(const struct wlb_parameters *parameters, int bucket);

#endif

/*
 * The weights that the ranks of a data group gather after each of them has updated its part, on a queue of its own. A
 * gather runs beside what is queued after it where the transport advances by itself: beside the update of other buckets
 * and the first forward pass of the next step (Megatron Core's --overlap-param-gather). So whatever reads or changes
 * weights of the flat buffer, or the sums of gradients that update them, awaits them first, by the functions below;
 * they do nothing where the weights have been awaited.
 */
#ifndef WORKER_MODEL_GATHERED_WEIGHTS_H
#define WORKER_MODEL_GATHERED_WEIGHTS_H

#include "worker/model/parameters.h"
#include "worker/parallel/groups.h"

/* Gathers a bucket's weights, of which this rank has its part and which must have been awaited, once the work on the
 * queue `behind` is done (NULL: on the compute queue). In a data group of one rank what awaits the weights waits for
 * that work, by `updated`, which is recorded and is the caller's. Collective over the data group. Returns -1 where the
 * collective failed. */
int wlb_weights_gather(const struct wlb_parameters *parameters, const struct wlb_groups *groups, int bucket,
                       struct wlb_queue *behind, struct wlb_event *updated, struct wlb_error *error);

/* Awaits the weights of the tensors `first` to `last`: operations that are queued from now on find them. Returns -1
 * where their gather failed. */
int wlb_weights_await(const struct wlb_parameters *parameters, int first, int last, struct wlb_error *error);

/* The same for the weights of a bucket. */
int wlb_weights_await_bucket(const struct wlb_parameters *parameters, int bucket, struct wlb_error *error);

/* The same for all weights of the rank. */
int wlb_weights_await_all(const struct wlb_parameters *parameters, struct wlb_error *error);

#endif

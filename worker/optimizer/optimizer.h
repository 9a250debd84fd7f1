/*
 * Updates weights by AdamW with ZeRO stage 1 (Rajbhandari et al. 2020): every rank of the data group owns an equal part
 * of each bucket. It receives the summed gradients of its part (reduce-scatter, begun as soon as the backward pass has
 * completed the bucket), keeps the moments of that part only, updates it, and all ranks gather the weights.
 */
#ifndef WORKER_OPTIMIZER_OPTIMIZER_H
#define WORKER_OPTIMIZER_OPTIMIZER_H

#include <stdint.h>

#include "worker/model/parameters.h"
#include "worker/parallel/groups.h"

struct wlb_optimizer_options {
	double beta1;
	double beta2;
	double epsilon;
	double weight_decay; /* of matrices; vectors (norms) have none, as Megatron-LM does */
	double clip_grad;    /* largest global norm; 0: no clipping */
};

struct wlb_optimizer;

/* The caller owns parameters and groups, which must outlive it. */
struct wlb_optimizer *wlb_optimizer_new(const struct wlb_parameters *parameters, const struct wlb_groups *groups,
                                        const struct wlb_optimizer_options *options, struct wlb_error *error);
void wlb_optimizer_free(struct wlb_optimizer *optimizer); /* NULL allowed */

/* Begins a step: sets all gradients to 0. */
void wlb_optimizer_begin(struct wlb_optimizer *optimizer);

/* A wlb_backward_watch.layer_done with the optimizer as context, for the last backward pass of every chunk: starts the
 * reduction of the buckets that are now complete, and advances the reductions in progress. Chunks and their layers must
 * come in descending order, as in wlb_plan_pass. */
int wlb_optimizer_layer_done(void *optimizer, int chunk, int layer, struct wlb_error *error);
/* The same for a rank that has nothing to compute in the last pass of a chunk: equal to a call of
 * wlb_optimizer_layer_done for each of its layers, and for the head and the embedding where the chunk has them. */
int wlb_optimizer_chunk_done(struct wlb_optimizer *optimizer, int chunk, struct wlb_error *error);

/* After the last pass: reduces the remaining buckets, sums buckets over tp, kv and the ends of the pipeline where their
 * kind requires it, and updates the weights. Every rank of the world must call it. `step` is 1 for the first.
 * *grad_norm is the global norm before clipping, the same on every rank. Returns 0; 1 where the norm is not finite,
 * with weights and moments unchanged on all ranks; -1 when a collective failed. */
int wlb_optimizer_step(struct wlb_optimizer *optimizer, int64_t step, double lr, double *grad_norm,
                       struct wlb_error *error);

/* Must be called instead of wlb_optimizer_step where a step is dropped after its backward passes: waits for the
 * reductions that they started, which use this rank's memory until then. Every rank of the data group must call it;
 * weights and moments are unchanged. Returns -1 when a collective failed. */
int wlb_optimizer_drop_step(struct wlb_optimizer *optimizer, struct wlb_error *error);

/* The moments, for checkpoints. `which` 0: first moments, 1: second. Collective over the data group: gathers the
 * moments of all parts into the buffer of gradients, laid out as the weights; it overwrites the gradients. */
int wlb_optimizer_gather_moments(struct wlb_optimizer *optimizer, int which, struct wlb_error *error);
/* The reverse: copies this rank's parts from the buffer of gradients. */
void wlb_optimizer_store_moments(struct wlb_optimizer *optimizer, int which);

#endif

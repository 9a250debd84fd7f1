/*
 * AdamW with ZeRO stage 1 (Rajbhandari et al. 2020): every rank of the data group owns an equal part of each bucket. It
 * receives the summed gradients of its part (reduce-scatter, begun as soon as the backward pass has completed the
 * bucket), keeps the moments of that part alone, updates it, and all ranks gather the weights.
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

/* parameters and groups stay the caller's. */
struct wlb_optimizer *wlb_optimizer_new(const struct wlb_parameters *parameters, const struct wlb_groups *groups,
                                        const struct wlb_optimizer_options *options, struct wlb_error *error);
void wlb_optimizer_free(struct wlb_optimizer *optimizer); /* NULL allowed */

/* Gradients to 0, for a new step. */
void wlb_optimizer_begin(struct wlb_optimizer *optimizer);

/* A wlb_backward_watch.layer_done with the optimizer as context, for the last backward pass of every chunk: starts the
 * reduction of the buckets that are now complete, and lets those that are under way move on. Chunks and their layers
 * come in falling order, as wlb_plan_pass has them. */
int wlb_optimizer_layer_done(void *optimizer, int chunk, int layer, struct wlb_error *error);
/* The same for a rank that has nothing to compute in the last pass of a chunk: as if all its layers had been told, the
 * head's and the embedding's where the chunk has them. */
int wlb_optimizer_chunk_done(struct wlb_optimizer *optimizer, int chunk, struct wlb_error *error);

/* After the last pass: reduces what is left, sums over tp, kv and the pipeline's ends what must be, and updates the
 * weights. Every rank of the world calls it. `step` is 1 for the first. *grad_norm is the global norm before clipping,
 * the same on every rank. A norm that is not finite changes nothing, on any rank: then 1 is returned. -1 when a
 * collective failed. */
int wlb_optimizer_step(struct wlb_optimizer *optimizer, int64_t step, double lr, double *grad_norm,
                       struct wlb_error *error);

/* In place of wlb_optimizer_step where a step is given up after its backward passes: waits for the reductions that they
 * started, which use this rank's memory until then. Every rank of the data group calls it; weights and moments are
 * unchanged. -1 when a collective failed. */
int wlb_optimizer_drop_step(struct wlb_optimizer *optimizer, struct wlb_error *error);

/* The moments, for checkpoints. `which` 0: first moments, 1: second. Collective over the data group: gathers those of
 * all parts into the buffer of gradients, laid out as the weights; the gradients are lost. */
int wlb_optimizer_gather_moments(struct wlb_optimizer *optimizer, int which, struct wlb_error *error);
/* The reverse: takes this rank's parts from the buffer of gradients. */
void wlb_optimizer_take_moments(struct wlb_optimizer *optimizer, int which);

#endif

/*
 * Updates weights by AdamW with ZeRO stage 1 or 2 (Rajbhandari et al. 2020): every rank of the data group owns an equal
 * part of each bucket. It receives the summed gradients of its part (reduce-scatter, begun as soon as the backward pass
 * has completed the bucket; of stage 2 see worker/model/parameters.h and reduce.h), keeps the masters and the moments
 * of that part only, updates it, and all ranks gather the weights, which the model awaits where it reads them
 * (worker/model/gathered_weights.h). Updates are on a queue of their own, in the order of the forward pass, and so run
 * beside that of the next step.
 *
 * Masters are the weights in the device's type `master`, which AdamW updates (Micikevicius et al. 2018); those in use
 * are the masters rounded to `compute`. Where the two types are equal, the weights in use are the masters and no memory
 * is taken for others; where they are float32 and bfloat16, only the lower half of each master is kept beside the
 * weight (kernels/bfloat16.h).
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

/* What the optimizer keeps of each weight; a checkpoint holds all three. */
enum wlb_state { WLB_STATE_MASTERS, WLB_STATE_FIRST_MOMENTS, WLB_STATE_SECOND_MOMENTS, WLB_STATES };

/* The numbers of a step, doubles in device memory: the sum of the loss of its tokens, the sum of the squares of its
 * gradients before clipping, and the factor that clipping multiplies gradients by. The factor is 0 where one of the
 * sums is not finite, or the norm is above a limit. */
enum wlb_step_sum { WLB_SUM_LOSS, WLB_SUM_SQUARES, WLB_CLIP_FACTOR, WLB_STEP_SUMS };

struct wlb_optimizer;

/* The caller owns parameters and groups, which must outlive it. */
struct wlb_optimizer *wlb_optimizer_new(const struct wlb_parameters *parameters, const struct wlb_groups *groups,
                                        const struct wlb_optimizer_options *options, struct wlb_error *error);
void wlb_optimizer_free(struct wlb_optimizer *optimizer); /* NULL allowed */

/* Begins a step, to whose gradients nothing has been added. */
void wlb_optimizer_begin(struct wlb_optimizer *optimizer);

/* Begins a backward pass whose gradients are reduced, on every rank of the data group: with ZeRO stage 1 the last one
 * of each chunk in the step, with stage 2 each of the one chunk. is_last: it is the last. Returns -1 where a collective
 * failed. */
int wlb_optimizer_begin_pass(struct wlb_optimizer *optimizer, int is_last, struct wlb_error *error);
/* A wlb_backward_watch.layer_done with the optimizer as context, for such a pass: starts the reduction of the buckets
 * that are now complete, and advances the reductions in progress. The last passes of chunks, and the layers of a pass,
 * must come in descending order, as in wlb_plan_pass. */
int wlb_optimizer_layer_done(void *optimizer, int chunk, int layer, struct wlb_error *error);
/* The same for a rank that has nothing to compute in the pass of a chunk: equal to a call of
 * wlb_optimizer_layer_done for each of its layers, and for the head and the embedding where the chunk has them. */
int wlb_optimizer_chunk_done(struct wlb_optimizer *optimizer, int chunk, struct wlb_error *error);

/* After the last pass: reduces the remaining buckets, sums buckets over tp, kv and the ends of the pipeline where their
 * kind requires it, updates the weights, and starts to gather them. Every rank of the world must call it. `step` is 1
 * for the first. most_norm: the largest norm, before clipping, with which weights are updated; INFINITY: any.
 * sums[WLB_STEP_SUMS] (device): sums[WLB_SUM_LOSS] is this rank's loss and becomes that of all ranks; the others are
 * set, the same on every rank. Where the factor is 0, weights, masters and moments are unchanged. The sums may be read
 * once the device is synchronized, which also reports its errors. Returns -1 when a collective failed.
 */
int wlb_optimizer_step(struct wlb_optimizer *optimizer, int64_t step, double lr, double most_norm, double *sums,
                       struct wlb_error *error);

/* -- masters and moments, for initial weights and checkpoints -- */
/* Starts to copy, on the queue, that state of elements of a tensor, all in this rank's part of its bucket, to
 * values_host (master, memory of alloc_host). Masters that the optimizer has in halves arrive as such:
 * wlb_optimizer_join. Returns -1 where weights could not be awaited. */
int wlb_optimizer_fetch(struct wlb_optimizer *optimizer, struct wlb_queue *queue, enum wlb_state state, int tensor,
                        struct wlb_element_range elements, void *values_host, struct wlb_error *error);
/* Whether masters are in halves: the weight in use, and the lower half. */
int wlb_optimizer_has_halves(const struct wlb_optimizer *optimizer);
/* Joins `count` masters that have arrived in halves. Any thread may call it. Returns -1 if out of memory. */
int wlb_optimizer_join(float *masters_host, size_t count, struct wlb_error *error);
/* Sets that state of a tensor in this rank's part from values_host (master), this rank's whole block; with the masters
 * it sets the weights in use of the whole block. Returns -1 if out of memory. */
int wlb_optimizer_store(struct wlb_optimizer *optimizer, enum wlb_state state, int tensor, const void *values_host,
                        struct wlb_error *error);
/* The same from a range of the block's elements alone. Once it has been called for all masters of this rank's parts,
 * wlb_optimizer_share_weights must follow. */
int wlb_optimizer_store_range(struct wlb_optimizer *optimizer, enum wlb_state state, int tensor,
                              struct wlb_element_range elements, const void *values_host, struct wlb_error *error);
/* Collective over the data group: every rank receives the weights in use of all parts. Returns -1 when a collective
 * failed. */
int wlb_optimizer_share_weights(struct wlb_optimizer *optimizer, struct wlb_error *error);

#endif

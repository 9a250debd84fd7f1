/*
 * One training step of one rank, forward and backward: the passes of its pipeline stage in the order of
 * wlb_plan_pass (1F1B, interleaved 1F1B), with activations and gradients sent from stage to stage. Micro-batches may be
 * of any size; every stage skips one without tokens. Sends continue while the stage computes.
 */
#ifndef WORKER_TRAIN_PIPELINE_H
#define WORKER_TRAIN_PIPELINE_H

#include "worker/load/loader.h"
#include "worker/model/transformer.h"
#include "worker/optimizer/optimizer.h"

struct wlb_pipeline;

/* Slots that a stage needs: for the chunks in flight (wlb_plan_in_flight), and where there are several stages one more,
 * whose gradient is still being sent, or whose input is received early. */
int wlb_pipeline_slots(const struct wlb_plan *plan, int stage);

/* The plan is copied; the caller owns all else, which must outlive the pipeline. The transformer must have
 * wlb_pipeline_slots() slots, and activations of wlb_plan_in_flight() chunks. */
struct wlb_pipeline *wlb_pipeline_new(const struct wlb_plan *plan, const struct wlb_parameters *parameters,
                                      const struct wlb_groups *groups, struct wlb_transformer *transformer,
                                      struct wlb_optimizer *optimizer, struct wlb_error *error);
void wlb_pipeline_free(struct wlb_pipeline *pipeline); /* NULL allowed */

/* Called for each pass over a micro-batch that has tokens: before it is queued, and when it is queued; the device may
 * then still compute it. An error of `queued` ends the step. */
struct wlb_pass_watch {
	void (*begins)(void *context, int backward);
	int (*queued)(void *context, struct wlb_error *error);
	/* Called with what the pass leaves for the stage that follows it, `bytes` of device memory: the residual
	 * stream, or its gradient. NULL allowed. */
	int (*leaves)(void *context, struct wlb_pass pass, const void *stream, size_t bytes, struct wlb_error *error);
	/* wlb_backward_watch.layer_done of wlb_pipeline_run_alone. NULL allowed. */
	int (*layer_done)(void *context, int chunk, int layer, struct wlb_error *error);
	void *context;
};

/* Runs all passes over the step's micro-batches. Adds the gradients of the loss, divided by the loss_tokens of the
 * step, to the parameters' and the summed loss to *loss_sum (device). Returns -1 when a collective failed. */
int wlb_pipeline_run(struct wlb_pipeline *pipeline, const struct wlb_loaded_step *step, double *loss_sum,
                     const struct wlb_pass_watch *watch, struct wlb_error *error);

/* The same over one micro-batch that is part of no step: the gradients, of its mean loss, are not reduced over the data
 * group. wlb_optimizer_begin comes before it, and before the next step. The gradients of a bucket that passes
 * (gradients.h) are valid until the layers that follow are done. All stages of the replica call it. */
int wlb_pipeline_run_alone(struct wlb_pipeline *pipeline, const struct wlb_micro_batch *batch, double *loss_sum,
                           const struct wlb_pass_watch *watch, struct wlb_error *error);

/* The loss of the step's micro-batches alone, without a gradient: the forward passes in their order, after which no
 * activations are kept. Adds the summed loss of this rank's tokens to *loss_sum (device). All stages of the replica
 * call it. */
int wlb_pipeline_evaluate(struct wlb_pipeline *pipeline, const struct wlb_loaded_step *step, double *loss_sum,
                          struct wlb_error *error);

#endif

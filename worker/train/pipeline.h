/*
 * One training step of one rank, forward and backward: the passes of its pipeline stage in the order of
 * wlb_plan_pass (1F1B, interleaved 1F1B), activations and gradients handed from stage to stage. Micro-batches may be of
 * any size; one without tokens is passed over by every stage. What is sent goes on while the stage computes.
 */
#ifndef WORKER_TRAIN_PIPELINE_H
#define WORKER_TRAIN_PIPELINE_H

#include "worker/load/loader.h"
#include "worker/model/transformer.h"
#include "worker/optimizer/optimizer.h"

struct wlb_pipeline;

/* Slots that a stage needs: chunks whose forward pass is done and whose backward pass is not, and where
 * there are several stages one more, whose gradient is still being sent. */
int wlb_pipeline_slots(const struct wlb_plan *plan, int stage);

/* All but the plan, which is copied, stay the caller's. The transformer has wlb_pipeline_slots() slots. */
struct wlb_pipeline *wlb_pipeline_new(const struct wlb_plan *plan, const struct wlb_parameters *parameters,
                                      const struct wlb_groups *groups, struct wlb_transformer *transformer,
                                      struct wlb_optimizer *optimizer, struct wlb_error *error);
void wlb_pipeline_free(struct wlb_pipeline *pipeline); /* NULL allowed */

/* Told of each pass over a micro-batch that has tokens: before it begins, and when the device has ended it. */
struct wlb_pass_watch {
	void (*begins)(void *context);
	void (*ended)(void *context, int backward);
	void *context;
};

/* Runs all passes over the step's micro-batches. Adds the gradients of the loss, divided by the tokens of the step, and
 * the summed loss to *loss_sum (device). -1 when a collective failed. */
int wlb_pipeline_run(struct wlb_pipeline *pipeline, const struct wlb_loaded_step *step, double *loss_sum,
                     const struct wlb_pass_watch *watch, struct wlb_error *error);

#endif

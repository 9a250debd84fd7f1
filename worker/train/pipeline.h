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
#include "worker/train/step_times.h"

struct wlb_pipeline;

/* Slots that a stage needs: chunks whose forward pass is done and whose backward pass is not, and where
 * there are several stages one more, whose gradient is still being sent. */
int wlb_pipeline_slots(const struct wlb_plan *plan, int stage);

/* All but the plan, which is copied, stay the caller's. The transformer has wlb_pipeline_slots() slots. */
struct wlb_pipeline *wlb_pipeline_new(const struct wlb_plan *plan, const struct wlb_parameters *parameters,
                                      const struct wlb_groups *groups, struct wlb_transformer *transformer,
                                      struct wlb_optimizer *optimizer, struct wlb_error *error);
void wlb_pipeline_free(struct wlb_pipeline *pipeline); /* NULL allowed */

/* Runs all passes over the step's micro-batches. Adds gradients of the loss, divided by the tokens of the step, the
 * summed loss to *loss_sum (device), and what the passes took to *times. -1 when a collective failed. */
int wlb_pipeline_run(struct wlb_pipeline *pipeline, const struct wlb_loaded_step *step, double *loss_sum,
                     struct wlb_step_times *times, struct wlb_error *error);

#endif

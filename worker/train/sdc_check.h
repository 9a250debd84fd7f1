/*
 * Checks for silent data corruption (--sdc-check-interval): one micro-batch is computed on every replica, forward and
 * backward, and what each rank computed is compared bit for bit by digests. Weights are the same on all replicas, and
 * operations have a fixed order (kernels/ops.h), so ranks of one place in their replicas compute the same bits. Where
 * some differ all compute the micro-batch once more, which shows a rank that does not agree with itself.
 *
 * Replicas are not compared where healthy ones may differ: on processors or GPUs of several models, with other numbers
 * of threads, and where the ranks of a tensor- or context-parallel group of more than two are on several nodes, so that
 * their sums may be in another order. There, and where there is one replica, each rank is compared with itself.
 */
#ifndef WORKER_TRAIN_SDC_CHECK_H
#define WORKER_TRAIN_SDC_CHECK_H

#include "worker/launch/launch.h"
#include "worker/optimizer/optimizer.h"
#include "worker/train/pipeline.h"

struct wlb_sdc_check;

/* What a check uses; the caller owns all of it, and it must outlive the check. */
struct wlb_sdc_check_uses {
	const struct wlb_launch *launch;
	struct wlb_device *device;
	const struct wlb_groups *groups;
	const struct wlb_parameters *parameters;
	struct wlb_optimizer *optimizer;
	struct wlb_pipeline *pipeline;
	const struct wlb_plan *plan;
};

/* Returns NULL if out of memory. */
struct wlb_sdc_check *wlb_sdc_check_new(const struct wlb_sdc_check_uses *uses, struct wlb_error *error);
void wlb_sdc_check_free(struct wlb_sdc_check *check); /* NULL allowed */

/* Collective over the world, before the first check: finds out whether replicas can be compared. Where they cannot,
 * rank 0 says so on standard error. Returns -1 when a collective failed. */
int wlb_sdc_check_open(struct wlb_sdc_check *check, struct wlb_error *error);

/* Collective over the world, between two steps: gradients are overwritten, and nothing else of training changes.
 * `batch` is the same micro-batch on all replicas. Of what it finds rank 0 prints a line, and the ranks that are
 * suspected report to wlb-agent. Returns -1 when a collective or an operation failed. */
int wlb_sdc_check_run(struct wlb_sdc_check *check, int64_t step, const struct wlb_micro_batch *batch,
                      struct wlb_error *error);

#endif

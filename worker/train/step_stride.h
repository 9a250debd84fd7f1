/*
 * Which steps the ranks report to wlb-agent: those whose number is a multiple of a power of two, the stride, so that a
 * run of short steps reports no more of them than agent and coordinator take in a second. Rank 0 chooses the stride,
 * and all ranks learn it with the numbers that they exchange after each step: so all report the same steps.
 */
#ifndef WORKER_TRAIN_STEP_STRIDE_H
#define WORKER_TRAIN_STEP_STRIDE_H

#include <stdint.h>

struct wlb_step_stride {
	double period_s; /* about the time between two steps that are reported, where steps are shorter */
	double mean_s;   /* of the last steps; 0: none has ended */
	int64_t chosen;  /* by this rank */
	int64_t agreed;  /* the same on all ranks */
};

void wlb_step_stride_init(struct wlb_step_stride *stride, int ranks, int ranks_per_node);
/* Notes how long a step took, and chooses the stride, which counts on rank 0 alone. It changes only where steps are
 * reported more than 1.4 times as often as each period_s, or half as often, so that it does not change from step to
 * step.
 */
void wlb_step_stride_note(struct wlb_step_stride *stride, double step_s);
/* Returns 1 where the step is reported. */
int wlb_step_stride_has(const struct wlb_step_stride *stride, int64_t step);

#endif

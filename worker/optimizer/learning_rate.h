/* Computes the learning rate of each step: warm-up, then decay. */
#ifndef WORKER_OPTIMIZER_LEARNING_RATE_H
#define WORKER_OPTIMIZER_LEARNING_RATE_H

#include <stdint.h>

enum wlb_lr_decay { WLB_LR_CONSTANT, WLB_LR_LINEAR, WLB_LR_COSINE };

struct wlb_lr_schedule {
	double max_lr;
	double min_lr;
	int64_t warmup_iters;
	int64_t decay_iters; /* min_lr from this step on */
	enum wlb_lr_decay decay;
};

/* Returns the learning rate of step `step`, 1 for the first. The schedule is Megatron-LM's, shifted by one step, so
 * that the learning rate of the first step is not 0. */
double wlb_learning_rate(const struct wlb_lr_schedule *schedule, int64_t step);

#endif

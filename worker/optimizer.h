/* AdamW over the flat buffers, clipping by global norm, and the learning rate of each step. */
#ifndef WLB_OPTIMIZER_H
#define WLB_OPTIMIZER_H

#include <stdint.h>

#include "worker/model.h"

enum wlb_lr_decay { WLB_LR_CONSTANT, WLB_LR_LINEAR, WLB_LR_COSINE };

struct wlb_lr_schedule {
	double max_lr;
	double min_lr;
	int64_t warmup_iters;
	int64_t decay_iters; /* min_lr from this step on */
	enum wlb_lr_decay decay;
};

/* Learning rate of step `step`, 1 for the first. As Megatron-LM's scheduler, counted so that the first step
 * already has a share of the warm-up instead of 0. */
double wlb_learning_rate(const struct wlb_lr_schedule *schedule, int64_t step);

struct wlb_optimizer_options {
	double beta1;
	double beta2;
	double epsilon;
	double weight_decay; /* of matrices; vectors (norms) have none, as Megatron-LM does */
	double clip_grad;    /* largest global norm; 0: no clipping */
};

struct wlb_optimizer {
	struct wlb_device *device;
	struct wlb_optimizer_options options;
	size_t elements;
	void *m;             /* first moments, laid out as the weights */
	void *v;             /* second moments */
	double *sum_squares; /* device */
};

struct wlb_optimizer *wlb_optimizer_new(const struct wlb_parameters *parameters,
                                        const struct wlb_optimizer_options *options, struct wlb_error *error);
void wlb_optimizer_free(struct wlb_optimizer *optimizer); /* NULL allowed */

/* One update from the gradients, which hold the sum over the whole global batch. *grad_norm is the norm
 * before clipping. A norm that is not finite changes nothing and is an error. */
int wlb_optimizer_step(struct wlb_optimizer *optimizer, const struct wlb_parameters *parameters, int64_t step,
                       double lr, double *grad_norm, struct wlb_error *error);

#endif

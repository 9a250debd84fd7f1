/* The values of optimizer and learning rate that a checkpoint records, so that a run continues with those it began
 * with. */
#ifndef WORKER_CHECKPOINT_HYPERPARAMETERS_H
#define WORKER_CHECKPOINT_HYPERPARAMETERS_H

#include <jansson.h>
#include <stdint.h>

#include "libwlb/wlb.h"
#include "worker/optimizer/learning_rate.h"

/* Each has the name of its option. */
struct wlb_hyperparameters {
	double lr;
	double min_lr;
	int64_t lr_warmup_iters;
	int64_t lr_decay_iters;
	int lr_decay_style; /* enum wlb_lr_decay */
	double weight_decay;
	double adam_beta1;
	double adam_beta2;
	double adam_eps;
	double clip_grad;
};

/* Returns them as a JSON object; NULL where memory is short, or a number is not finite. */
json_t *wlb_hyperparameters_format(const struct wlb_hyperparameters *values);
/* Reads such an object. Returns -1 with the name and the rule where one is missing or outside of its range. */
int wlb_hyperparameters_parse(const json_t *json, struct wlb_hyperparameters *values, struct wlb_error *error);
/* Writes "--lr was 0.001, is 0.002; ..." for all that differ in what they compute, as much of it as `text` holds.
 * Returns their number. */
int wlb_hyperparameters_compare(const struct wlb_hyperparameters *was, const struct wlb_hyperparameters *is, char *text,
                                size_t size);

#endif

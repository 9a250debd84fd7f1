/* The gradient norms of the newest steps, by which a step of unusual gradients is known. A checkpoint has them, so that
 * a run that continues judges its steps as if it had not been interrupted. */
#ifndef WORKER_CHECKPOINT_RECENT_NORMS_H
#define WORKER_CHECKPOINT_RECENT_NORMS_H

#include <jansson.h>
#include <stdint.h>

#include "libwlb/wlb.h"

enum {
	WLB_NORMS_OF_MEDIAN = 64,
	WLB_NORMS_LEAST = 16, /* of fewer there is no median */
	/* The newest may be left out: how many of them are known when a step begins depends on the device. */
	WLB_RECENT_NORMS = WLB_NORMS_OF_MEDIAN + 2,
};

struct wlb_recent_norms {
	struct wlb_step_norm {
		int64_t step;
		double norm;
	} list[WLB_RECENT_NORMS]; /* the oldest first */
	int count;
};

/* Adds the norm, which must be finite, of a step after those in the list; the oldest is dropped. */
void wlb_recent_norms_add(struct wlb_recent_norms *norms, int64_t step, double norm);
/* Returns the median of the newest WLB_NORMS_OF_MEDIAN norms of steps up to last_step (of an even number the lower of
 * the two in the middle); NaN where there are too few. */
double wlb_recent_norms_median(const struct wlb_recent_norms *norms, int64_t last_step);

/* Returns [[step, norm], ...]; NULL where memory is short. */
json_t *wlb_recent_norms_format(const struct wlb_recent_norms *norms);
/* Reads such a list. Returns -1 with the rule where it is another. */
int wlb_recent_norms_parse(const json_t *json, struct wlb_recent_norms *norms, struct wlb_error *error);

#endif

/* What the times of a layer's operations depend on; internal. */
#ifndef LIBWLB_COST_LAYER_COST_H
#define LIBWLB_COST_LAYER_COST_H

#include <math.h>

#include "libwlb/wlb.h"

struct wlb_seconds {
	double forward, backward;
};

/* The values that the time of an operation depends on; the caller owns all of them. The plan must have passed
 * wlb_plan_check. */
struct wlb_layer_cost {
	const struct wlb_model *model;
	const struct wlb_machine *machine;
	const struct wlb_cost_options *options;
	const struct wlb_plan *plan;
};

static inline int wlb_layer_is_worker(const struct wlb_layer_cost *cost)
{
	return cost->options->trainer == WLB_COST_WORKER;
}

/* Returns 1 where wlb-worker divides the rows of a micro-batch with so many tokens on a rank into halves. */
static inline int wlb_layer_halves_rows(const struct wlb_layer_cost *cost, double tokens)
{
	double least = (double)cost->options->halved_rows, tp = (double)cost->plan->layout.tp;
	return least > 0.0 && tp > 1.0 && tokens >= fmax(least, 2.0 * tp);
}

#endif

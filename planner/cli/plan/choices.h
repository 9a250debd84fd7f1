/* What other choices would free, where memory makes a plan recompute, or where no plan fits. */
#ifndef PLANNER_CLI_PLAN_CHOICES_H
#define PLANNER_CLI_PLAN_CHOICES_H

#include "planner/cli/plan/input.h"

enum { WLB_PLAN_CHOICES = 7 };

struct wlb_plan_choices {
	struct wlb_plan_choice {
		char option[48];    /* of wlb plan */
		double freed_bytes; /* of the plan without the choice, by it alone; below 0: it takes more */
		struct wlb_candidate candidate; /* the fastest plan that fits with it */
	} found[WLB_PLAN_CHOICES];
	int count;
};

/* Searches again with each choice that the plan has not: gradients in bfloat16, released activations, and for the
 * layout of `best` a higher stage of ZeRO, selective recomputation, half of a micro-batch, twice the tensor
 * parallelism. Finds nothing where `best` does not recompute; where it is NULL, no plan fits, and the layout is free. A
 * choice with which no plan fits is left out. */
void wlb_plan_choices_find(const struct wlb_plan_request *request, struct wlb_plan_input *input,
                           const struct wlb_search_fixed *fixed, const struct wlb_candidate *best,
                           struct wlb_plan_choices *choices);

#endif

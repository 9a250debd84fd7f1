/* What other choices than the trainer's would save, where memory makes a plan recompute whole layers. */
#ifndef PLANNER_CLI_PLAN_CHOICES_H
#define PLANNER_CLI_PLAN_CHOICES_H

#include "planner/cli/plan/input.h"

enum { WLB_PLAN_CHOICES = 2 };

struct wlb_plan_choices {
	struct wlb_plan_choice {
		const char *option; /* of wlb plan */
		struct wlb_candidate candidate;
	} found[WLB_PLAN_CHOICES];
	int count;
};

/* Searches again with each choice that the plan has not, where `best` recomputes whole layers; keeps those that have a
 * shorter step. A search that fails finds none. */
void wlb_plan_choices_find(const struct wlb_plan_request *request, struct wlb_plan_input *input,
                           const struct wlb_search_fixed *fixed, const struct wlb_candidate *best,
                           struct wlb_plan_choices *choices);

#endif

/* Compares the plan of a trainer's command with the best one, and says what to change. */
#ifndef PLANNER_CLI_PLAN_COMPARE_H
#define PLANNER_CLI_PLAN_COMPARE_H

#include <jansson.h>

#include "planner/cli/plan/explain.h"
#include "planner/cli/plan/mine.h"
#include "planner/cli/plan/near.h"

struct wlb_comparison {
	struct wlb_mine mine;
	/* Whether its plan runs, and how; where it lacks memory, `reason` says how much, and the candidate how it would
	 * run with more; where it breaks a rule, the candidate has no step. */
	struct wlb_explanation why;
	struct wlb_published_near near;
};

/* Searches the plan of comparison->mine, which is set, on the same nodes. Returns -1 where the published steps cannot
 * be read. */
int wlb_compare(const struct wlb_plan_request *request, struct wlb_plan_input *input, struct wlb_comparison *comparison,
                struct wlb_error *error);

/* Prints how the plan runs beside the best one, what would have to change, what the command does not say, and what of
 * it was not looked at. */
void wlb_compare_print(const struct wlb_comparison *comparison, const struct wlb_plan_request *request,
                       const struct wlb_plan_input *input, const struct wlb_candidate *best);

/* The same as an object; returns NULL if out of memory. */
json_t *wlb_compare_to_json(const struct wlb_comparison *comparison, const struct wlb_plan_request *request,
                            const struct wlb_plan_input *input, const struct wlb_candidate *best);

#endif

/* Finds out why a layout is not the one that a search has chosen. */
#ifndef PLANNER_CLI_PLAN_EXPLAIN_H
#define PLANNER_CLI_PLAN_EXPLAIN_H

#include "libwlb/wlb.h"
#include "planner/cli/plan/input.h"

struct wlb_explanation {
	struct wlb_layout asked; /* dp 0: as many replicas as the GPUs allow */
	int can_run;             /* 0: it breaks a rule or does not fit; then `reason` says why */
	char reason[1024];
	struct wlb_candidate candidate; /* the best plan of this layout */
};

/* Searches with all that is held, and sets can_run, and `reason` or the candidate. */
void wlb_explain_held(const struct wlb_plan_request *request, struct wlb_plan_input *input,
                      const struct wlb_search_fixed *held, struct wlb_explanation *why);

/* Searches again with this layout fixed, in addition to `fixed`. Returns -1 where `layout` is no layout. */
int wlb_explain(const struct wlb_plan_request *request, struct wlb_plan_input *input,
                const struct wlb_search_fixed *fixed, const char *layout, const struct wlb_search_result *result,
                struct wlb_explanation *why, struct wlb_error *error);

#endif

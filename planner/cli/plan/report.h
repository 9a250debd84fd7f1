/* Prints the result of a search for people. */
#ifndef PLANNER_CLI_PLAN_REPORT_H
#define PLANNER_CLI_PLAN_REPORT_H

#include "libwlb/wlb.h"
#include "planner/cli/plan/findings.h"
#include "planner/cli/plan/input.h"

/* Prints the chosen layout with the reason, the next best, layouts that do not fit, the nodes of the ranks, and the
 * explanation where `why` is not NULL. Returns -1 if out of memory. */
int wlb_search_print(const struct wlb_plan_request *request, const struct wlb_plan_input *input,
                     const struct wlb_search_result *result, const struct wlb_plan_findings *findings);

/* Prints how the one runs, behind `verb`, and in which parts its step is longer than the best one's. */
void wlb_candidate_print_beside(const char *verb, const struct wlb_candidate *this, const struct wlb_candidate *best);

#endif

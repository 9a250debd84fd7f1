/* The result of a search for people. */
#ifndef COORDINATOR_WLB_CALCULATORS_PLAN_REPORT_H
#define COORDINATOR_WLB_CALCULATORS_PLAN_REPORT_H

#include "coordinator/wlb/calculators/plan/input.h"
#include "libwlb/wlb.h"

/* The layout chosen, the reason, the next best, what does not fit, and where the ranks run. Returns -1 if out of
 * memory. */
int wlb_search_print(const struct wlb_plan_input *input, const struct wlb_search_result *result);

#endif

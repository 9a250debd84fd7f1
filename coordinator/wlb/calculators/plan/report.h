/* The result of a search for people. */
#ifndef COORDINATOR_WLB_CALCULATORS_PLAN_REPORT_H
#define COORDINATOR_WLB_CALCULATORS_PLAN_REPORT_H

#include "coordinator/wlb/calculators/plan/explain.h"
#include "coordinator/wlb/calculators/plan/input.h"
#include "libwlb/wlb.h"

/* The layout chosen, the reason, the next best, what does not fit, where the ranks run, and the explanation where there
 * is one (else NULL). Returns -1 if out of memory. */
int wlb_search_print(const struct wlb_plan_request *request, const struct wlb_plan_input *input,
                     const struct wlb_search_result *result, const struct wlb_explanation *why);

#endif

/* The search for a layout, over samples of the stream. */
#ifndef COORDINATOR_WLB_CALCULATORS_PLAN_SEARCH_H
#define COORDINATOR_WLB_CALCULATORS_PLAN_SEARCH_H

#include "coordinator/wlb/calculators/plan/input.h"

/* wlb_search() for what was asked, `keep` candidates of each kind; NULL with a message. Free with wlb_search_free. */
struct wlb_search_result *wlb_plan_search(const struct wlb_plan_request *request, struct wlb_plan_input *input,
                                          int keep, struct wlb_error *error);

#endif

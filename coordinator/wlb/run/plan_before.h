/* Adds to the record of a plan what the layout of the attempt before would have cost on the remaining nodes. */
#ifndef COORDINATOR_WLB_RUN_PLAN_BEFORE_H
#define COORDINATOR_WLB_RUN_PLAN_BEFORE_H

#include <jansson.h>

#include "planner/automatic.h"

/* Searches with tp, cp and pp of `before` held and dp as large as `request` allows. Sets record.before to the best plan
 * as in wlb_plan_record, or, where there is none, to {"layout", "reason"} with dp as it was. Does nothing where the
 * record has the same tp, cp and pp, or `before` has tp 0. */
void wlb_run_plan_before(const struct wlb_layout *before, const struct wlb_auto_request *request, json_t *record);

#endif

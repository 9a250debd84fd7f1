/* Makes the record of type "plan" of docs/api.md from a plan. */
#ifndef PLANNER_PLAN_RECORD_H
#define PLANNER_PLAN_RECORD_H

#include <jansson.h>

#include "planner/automatic.h"

/* A record has at most this number of other layouts that fit in memory, and of layouts that do not. */
enum { WLB_PLAN_RECORD_OTHERS = 3 };

/* The chosen plan with its prediction, the next layouts with theirs, and the layouts that lack the least memory. Of a
 * layout only its best settings are there. Returns NULL if out of memory. */
json_t *wlb_plan_record(const struct wlb_auto_request *request, const struct wlb_auto *found);

/* One of these plans: layout, settings, memory, and step time or the memory that is missing. NULL if out of memory. */
json_t *wlb_plan_record_candidate(const struct wlb_auto_request *request, const struct wlb_candidate *candidate);

#endif

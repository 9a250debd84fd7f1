/* Parts of `wlb plan`: how the result of a search is shown. */
#ifndef COORDINATOR_WLB_CALCULATORS_PLAN_PLAN_H
#define COORDINATOR_WLB_CALCULATORS_PLAN_PLAN_H

#include <jansson.h>

#include "coordinator/wlb/calculators/plan/input.h"

enum { WLB_TIME_PARTS = 11 };

/* A part of a simulated step by its place, from 0: a few words for people, and its seconds. They sum to the step. */
const char *wlb_time_words(int part);
double wlb_time_part(const struct wlb_sim_time *time, int part);

/* "none", "selective" or "full". */
const char *wlb_recompute_name(enum wlb_recompute recompute);

/* Objects of {"layout": {...}, ...}, of memory in bytes and of times in seconds; NULL without memory. */
json_t *wlb_plan_to_json(const struct wlb_plan *plan);
json_t *wlb_time_to_json(const struct wlb_sim_time *time);

/* All of the result as an object; NULL without memory. */
json_t *wlb_search_to_json(const struct wlb_plan_input *input, const struct wlb_search_result *result);

/* The answer, why it is that, the next best, what does not fit, and where the ranks go. -1 without memory. */
int wlb_search_print(const struct wlb_plan_input *input, const struct wlb_search_result *result);

/* Bars of where a step's time goes; parts of no time are left out. */
void wlb_time_print(const struct wlb_sim_time *time);

#endif

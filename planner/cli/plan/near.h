/* Says how far predictions near a plan's were off. */
#ifndef PLANNER_CLI_PLAN_NEAR_H
#define PLANNER_CLI_PLAN_NEAR_H

#include <jansson.h>

#include "planner/cli/plan/input.h"
#include "planner/published.h"

/* Sets *near for a plan on so many GPUs. Returns -1 where the published steps cannot be read. */
int wlb_near_find(const struct wlb_plan_request *request, const struct wlb_plan_input *input, int32_t gpus,
                  struct wlb_published_near *near, struct wlb_error *error);

/* Prints a line for people: calibrated, predicted or unknown, and why. */
void wlb_near_print(const struct wlb_published_near *near);

/* Returns NULL if out of memory. */
json_t *wlb_near_to_json(const struct wlb_published_near *near);

#endif

/* Prints the results of `wlb sim`. */
#ifndef PLANNER_CLI_SIM_REPORT_H
#define PLANNER_CLI_SIM_REPORT_H

#include <jansson.h>

#include "planner/cli/plan/input.h"
#include "planner/cli/sim/run.h"

/* Returns NULL if out of memory. */
json_t *wlb_sim_to_json(const struct wlb_plan_request *request, const struct wlb_plan_input *input,
                        const struct wlb_sim_report *report);

/* Prints the speed-ups, the parts of a step that cause them, and the strategies that do not fit in memory. Returns -1
 * if out of memory. */
int wlb_sim_print(const struct wlb_plan_request *request, const struct wlb_plan_input *input,
                  const struct wlb_sim_report *report);

/* Prints a line of names, then one for each strategy. */
void wlb_sim_print_csv(const struct wlb_sim_report *report);

#endif

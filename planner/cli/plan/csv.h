/* The result of a search as comma-separated values. */
#ifndef PLANNER_CLI_PLAN_CSV_H
#define PLANNER_CLI_PLAN_CSV_H

#include "libwlb/wlb.h"

/* Prints a line of names, then a line for each plan: the chosen one, the next best, those that do not fit. What a plan
 * that was not simulated has no value for is empty. */
void wlb_search_print_csv(const struct wlb_search_result *result);

#endif

/* Names, rounds and prints the parts of a simulated step's time. */
#ifndef PLANNER_CLI_PLAN_TIME_H
#define PLANNER_CLI_PLAN_TIME_H

#include <jansson.h>
#include <stdint.h>

#include "libwlb/wlb.h"

enum { WLB_TIME_PARTS = 12 };

/* A part of a simulated step by its index, from 0: its name for people and its seconds. The parts sum to the step. */
const char *wlb_time_words(int part);
const char *wlb_time_name(int part); /* for programs: "compute" */
double wlb_time_part(const struct wlb_sim_time *time, int part);

/* The decimals with which a step of so many seconds and its parts are printed: 3, or for shorter steps 5 or 6, so that
 * a step of a millisecond or more has at least 4 digits. */
int wlb_time_decimals(double step_s);

/* The parts in seconds, rounded to `decimals` so that their sum is the rounded step: the parts with the largest
 * remainders are rounded up. */
void wlb_time_round(const struct wlb_sim_time *time, int decimals, double seconds[WLB_TIME_PARTS]);

/* Prints the parts of a step's time as bars, in seconds that sum to the step's; parts that round to 0 are left out. */
void wlb_time_print(const struct wlb_sim_time *time);

/* Makes an object of seconds by name; returns NULL if out of memory. */
json_t *wlb_time_to_json(const struct wlb_sim_time *time);

#endif

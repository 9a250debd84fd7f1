/* Where a simulated step's time goes, by name. */
#ifndef COORDINATOR_WLB_CALCULATORS_PLAN_TIME_H
#define COORDINATOR_WLB_CALCULATORS_PLAN_TIME_H

#include <jansson.h>

#include "libwlb/wlb.h"

enum { WLB_TIME_PARTS = 11 };

/* A part of a simulated step by its index, from 0: its name for people and its seconds. The parts sum to the step. */
const char *wlb_time_words(int part);
double wlb_time_part(const struct wlb_sim_time *time, int part);

/* Bars of where a step's time goes; parts of no time are left out. */
void wlb_time_print(const struct wlb_sim_time *time);

/* An object of seconds by name; returns NULL if out of memory. */
json_t *wlb_time_to_json(const struct wlb_sim_time *time);

#endif

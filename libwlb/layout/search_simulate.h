/* The step time of a plan, simulated. */
#ifndef LIBWLB_LAYOUT_SEARCH_SIMULATE_H
#define LIBWLB_LAYOUT_SEARCH_SIMULATE_H

#include "libwlb/layout/search_state.h"

/* Simulates a candidate and sets its step_s and time. Returns -1 if out of memory. step_s stays 0 where the documents
 * do not fit the plan. */
int wlb_search_simulate(const struct wlb_search *search, struct wlb_candidate *candidate, struct wlb_error *error);

#endif

/* The step time of a plan, simulated. */
#ifndef LIBWLB_LAYOUT_SEARCH_SIMULATE_H
#define LIBWLB_LAYOUT_SEARCH_SIMULATE_H

#include "libwlb/layout/search_state.h"

/* Simulates a candidate: its step_s and time. Returns -1 if out of memory; a plan that its documents do not fit in
 * stays at step_s 0. */
int wlb_search_simulate(const struct wlb_search *search, struct wlb_candidate *candidate, struct wlb_error *error);

#endif

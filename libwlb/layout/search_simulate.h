/* Simulates the step time of a plan. */
#ifndef LIBWLB_LAYOUT_SEARCH_SIMULATE_H
#define LIBWLB_LAYOUT_SEARCH_SIMULATE_H

#include "libwlb/layout/search_state.h"

/* Simulates a candidate and sets its times, and its micro_batch_tokens to the longest of the simulated micro-batches
 * (unless the limit is charged). Returns -1 if out of memory. */
int wlb_search_simulate(struct wlb_search *search, struct wlb_candidate *candidate, struct wlb_error *error);

#endif

/* Computes a lower bound of a plan's step time, and an estimate of it. */
#ifndef LIBWLB_LAYOUT_SEARCH_BOUND_H
#define LIBWLB_LAYOUT_SEARCH_BOUND_H

#include "libwlb/layout/search_state.h"

/* Sets the candidate's bound_s and the plan's estimate_s from its plan, its micro_batch_tokens and the layers of its
 * stages. */
void wlb_search_bound(const struct wlb_search *search, struct wlb_search_plan *plan);

#endif

/* Chooses what the backward pass of a plan recomputes. */
#ifndef LIBWLB_LAYOUT_SEARCH_RECOMPUTE_H
#define LIBWLB_LAYOUT_SEARCH_RECOMPUTE_H

#include "libwlb/layout/search_state.h"

/* Returns WLB_RECOMPUTE_FULL where what recomputation cannot free, weights, gradients and optimizer states of the first
 * stage, needs more memory than there is: the plan does not fit with less recomputation either. Else
 * WLB_RECOMPUTE_NONE. Depends on neither the candidate's micro-batches nor their length. */
enum wlb_recompute wlb_search_least_recompute(const struct wlb_search *search, const struct wlb_candidate *candidate);

/* Sets the candidate's recompute and recompute_layers to the least, from `least` on, with which it fits in memory, or
 * to the most where it does not fit; values that the caller has fixed stay. Sets the candidate's memory, that of the
 * stage that needs most. The candidate's micro_batch_tokens must be set. */
void wlb_search_recompute(const struct wlb_search *search, enum wlb_recompute least, struct wlb_candidate *candidate);

/* The share of a chunk's layers that the plan recomputes as a whole, 0 to 1: of the chunk with the most layers, so that
 * no chunk has a smaller share. */
double wlb_search_recomputed_share(const struct wlb_search *search, const struct wlb_plan *plan);

#endif

/* Divides the layers of a plan among its pipeline stages. */
#ifndef LIBWLB_LAYOUT_SEARCH_SPLIT_H
#define LIBWLB_LAYOUT_SEARCH_SPLIT_H

#include "libwlb/layout/search_state.h"

/* Chooses whether the embedding and the head count as layers, where that is not fixed: as they do in the division whose
 * longest stage has the least work, the simplest of equal ones. With `more`, of Megatron-LM without interleaving, the
 * first stage and the last may have several layers less than the others. Sets the plan's accounts and the layers of its
 * stages. Returns -1 where no division has a layer, or what counts as one, for each chunk, or with `more` where none
 * has a longest stage with less work than without it. */
int wlb_search_split(const struct wlb_search *search, int more, struct wlb_search_plan *plan);

/* Returns the work of the stage with the most, from that of a layer and of the head: no step is shorter. The division
 * must have been chosen. */
double wlb_search_longest_stage(const struct wlb_search_plan *plan, double layer, double head);

#endif

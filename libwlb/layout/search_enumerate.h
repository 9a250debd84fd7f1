/* Enumerates every plan that the machine and the model allow. */
#ifndef LIBWLB_LAYOUT_SEARCH_ENUMERATE_H
#define LIBWLB_LAYOUT_SEARCH_ENUMERATE_H

#include "libwlb/layout/search_state.h"

/* Fills `plans` with every plan that the machine and the model allow, each with its memory and bound. */
int wlb_search_enumerate(struct wlb_search *search, struct wlb_error *error);

/* Sets the candidate's memory, that of the stage that needs most, and what it misses, from its plan and its
 * micro_batch_tokens. The stage is the first, with the most micro-batches in flight, or the last, with the logits. */
void wlb_search_set_memory(const struct wlb_search *search, struct wlb_candidate *candidate);

#endif

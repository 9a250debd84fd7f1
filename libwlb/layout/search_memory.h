/* The memory of the GPU that needs most in a plan. */
#ifndef LIBWLB_LAYOUT_SEARCH_MEMORY_H
#define LIBWLB_LAYOUT_SEARCH_MEMORY_H

#include "libwlb/layout/search_state.h"

/* Sets the candidate's memory, that of the stage that needs most, and what it misses, from its plan and its
 * micro_batch_tokens. The stage is the first, with the most micro-batches in flight, or the last, with the logits. */
void wlb_search_set_memory(const struct wlb_search *search, struct wlb_candidate *candidate);

#endif

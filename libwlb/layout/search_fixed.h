/* Checks the values that the caller of a search holds fixed. */
#ifndef LIBWLB_LAYOUT_SEARCH_FIXED_H
#define LIBWLB_LAYOUT_SEARCH_FIXED_H

#include "libwlb/layout/search_state.h"

/* Returns 0, or -1 with the value and the rule where no plan can have what is fixed. The nodes must have been read. */
int wlb_search_check_fixed(const struct wlb_search *search, struct wlb_error *error);

/* Fails because no plan has all that is fixed together, or a rank on every GPU: the message names it. `most` is the
 * most GPUs that a plan uses where some may be idle, 0: none has a plan, or it was not asked. Returns -1. */
int wlb_search_fail_fixed(const struct wlb_search *search, int32_t most, struct wlb_error *error);

#endif

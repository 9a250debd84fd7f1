/* Every plan that machine and model allow. */
#ifndef LIBWLB_LAYOUT_SEARCH_ENUMERATE_H
#define LIBWLB_LAYOUT_SEARCH_ENUMERATE_H

#include <stdint.h>

#include "libwlb/layout/search_state.h"

/* Groups of tp GPUs that fit inside the nodes. */
int64_t wlb_search_slots(const struct wlb_search *search, int32_t tp);

/* Fills `plans` with every one that machine and model allow, memory and bound with each. */
int wlb_search_enumerate(struct wlb_search *search, struct wlb_error *error);

#endif

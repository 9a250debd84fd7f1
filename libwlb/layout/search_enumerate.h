/* Every plan that machine and model allow. */
#ifndef LIBWLB_LAYOUT_SEARCH_ENUMERATE_H
#define LIBWLB_LAYOUT_SEARCH_ENUMERATE_H

#include "libwlb/layout/search_state.h"

/* Fills `plans` with every one that machine and model allow, memory and bound with each. */
int wlb_search_enumerate(struct wlb_search *search, struct wlb_error *error);

#endif

/* Enumerates every plan that the machine and the model allow. */
#ifndef LIBWLB_LAYOUT_SEARCH_ENUMERATE_H
#define LIBWLB_LAYOUT_SEARCH_ENUMERATE_H

#include "libwlb/layout/search_state.h"

/* Fills `plans` with every plan that the machine and the model allow, each with its memory and bound. */
int wlb_search_enumerate(struct wlb_search *search, struct wlb_error *error);

#endif

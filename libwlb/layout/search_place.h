/* Assigns a plan's ranks to GPUs. */
#ifndef LIBWLB_LAYOUT_SEARCH_PLACE_H
#define LIBWLB_LAYOUT_SEARCH_PLACE_H

#include <stdint.h>

#include "libwlb/layout/search_state.h"

/* Writes where the plan's ranks run and which GPUs stay idle; each array has one element for each usable GPU. */
void wlb_search_place(const struct wlb_search *search, const struct wlb_plan *plan, struct wlb_search_result *result,
                      int32_t *rank_node, int32_t *rank_gpu, int32_t *idle_node, int32_t *idle_gpu);

#endif

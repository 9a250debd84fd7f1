/* Orders plans that are nearly equally fast, and plans that do not fit, by how usual their layout is. */
#ifndef LIBWLB_LAYOUT_SEARCH_PREFER_H
#define LIBWLB_LAYOUT_SEARCH_PREFER_H

#include "libwlb/layout/search_state.h"

/* Returns how unusual a layout is: 0 where tp, cp and pp are powers of two; the number of other primes that
 * divide cp x pp; more than any such number where tp is not a power of two. */
int wlb_search_unusual(const struct wlb_layout *layout);

/* Moves the least unusual of the plans that are at most near_equal slower than the first to the front, with
 * prefer_every_gpu one without idle GPUs before all others; the fastest of equals. The plans are by ascending step
 * time, `count` of them simulated. Returns 1 where that changes the first. */
int wlb_search_prefer(const struct wlb_search *search, const struct wlb_search_plan **plans, size_t count);

/* Sets misfit_group of all plans. */
void wlb_search_group_misfits(struct wlb_search *search);

/* Orders plans that do not fit by group, and those of a group by ascending missing bytes. Returns -1 if out of memory.
 */
int wlb_search_order_misfits(const struct wlb_search_plan **plans, size_t count);

#endif

/* Which of several plans people run: the order among near equals, and among plans that do not fit. */
#ifndef LIBWLB_LAYOUT_SEARCH_PREFER_H
#define LIBWLB_LAYOUT_SEARCH_PREFER_H

#include "libwlb/layout/search_state.h"

/* Ascending with how unusual a layout is: 0 where tp, cp and pp are powers of two; the number of other primes that
 * divide cp x pp; more than any such number where tp is not a power of two. */
int wlb_search_unusual(const struct wlb_layout *layout);

/* Moves the least unusual of the plans that are at most `share` slower than the first to the front; the fastest of
 * equals. The plans are by ascending step time, `count` of them simulated. Returns 1 where that changes the first. */
int wlb_search_prefer(const struct wlb_search_plan **plans, size_t count, double share);

/* Orders plans that do not fit: of each tp x cp x pp the plan that misses least, powers of two before others, by
 * ascending guess; then all others, by ascending guess. Returns -1 if out of memory. */
int wlb_search_order_misfits(const struct wlb_search_plan **plans, size_t count);

#endif

/* Packs documents of the samples into the micro-batches of a plan. */
#ifndef LIBWLB_LAYOUT_SEARCH_PACK_H
#define LIBWLB_LAYOUT_SEARCH_PACK_H

#include "libwlb/layout/search_state.h"

/* Packs documents of the samples into `bins` micro-batches whose mean share of the batch is `windows` windows. The
 * result belongs to the search, and is valid until the next call. Returns NULL if out of memory. */
const struct wlb_search_packing *wlb_search_pack(struct wlb_search *search, double windows, int32_t bins,
                                                 struct wlb_error *error);
void wlb_search_packings_free(struct wlb_search *search);

/* Returns the most tokens that a micro-batch may hold whose share of the batch is `windows` windows. */
int64_t wlb_search_limit(const struct wlb_search *search, double windows);

/* Sets *tokens to those of the longest micro-batch that packing the samples makes, where the share of each is `windows`
 * windows. It uses the larger of the two nearest ratios in a table of packed steps. Returns -1 if out of memory. */
int wlb_search_longest(struct wlb_search *search, double windows, int64_t *tokens, struct wlb_error *error);

#endif

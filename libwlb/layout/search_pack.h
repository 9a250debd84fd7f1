/* Packs documents of the samples into the micro-batches of a plan. */
#ifndef LIBWLB_LAYOUT_SEARCH_PACK_H
#define LIBWLB_LAYOUT_SEARCH_PACK_H

#include "libwlb/layout/search_state.h"

/* Returns the number of draws from the samples over which a time is to be averaged, each of so many documents as `of`,
 * whose draws do not count: together they have WLB_SEARCH_DRAWN_DOCUMENTS documents, since how equally few documents
 * can be packed depends on which they are. */
enum { WLB_SEARCH_DRAWN_DOCUMENTS = 128, WLB_SEARCH_DRAWS_MAX = 32 };
int32_t wlb_search_draws(const struct wlb_search *search, const struct wlb_search_draw *of);

/* Packs the documents of a draw, with cuts where they do not fit as a whole. All draws together have the lengths of the
 * samples. The result belongs to the search, and is valid until the next call. Returns NULL if out of memory. */
const struct wlb_search_packing *wlb_search_pack(struct wlb_search *search, const struct wlb_search_draw *draw,
                                                 struct wlb_error *error);
void wlb_search_packings_free(struct wlb_search *search);

/* Returns the most tokens that a micro-batch may hold whose share of the batch is `windows` windows. A program that
 * allocates the most is told whole windows: 4 windows on 3 replicas are 2 in a micro-batch (wlb_auto_windows). */
int64_t wlb_search_limit(const struct wlb_search *search, double windows);

/* Sets *tokens to those of the longest micro-batch that packing the samples makes, where the share of each is `windows`
 * windows. It uses the larger of the two nearest ratios in a table of packed steps. Returns -1 if out of memory. */
int wlb_search_longest(struct wlb_search *search, double windows, int64_t *tokens, struct wlb_error *error);

#endif

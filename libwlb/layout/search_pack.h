/* Documents of the samples, packed into the micro-batches of a plan. */
#ifndef LIBWLB_LAYOUT_SEARCH_PACK_H
#define LIBWLB_LAYOUT_SEARCH_PACK_H

#include "libwlb/layout/search_state.h"

struct wlb_search_packed {
	int64_t *tokens; /* of `count` documents; owned, as all arrays here */
	int32_t *bin_of;
	struct wlb_packed_span *spans; /* in the order of micro-batches */
	size_t count;
	int64_t longest; /* tokens of the longest micro-batch */
};

/* Packs documents of the samples of about `tokens` tokens into `bins` micro-batches of at most max_tokens. Returns 0, 1
 * where they do not fit, or -1 if out of memory. The result must be freed in each of these cases. */
int wlb_search_pack(const struct wlb_search *search, double tokens, int32_t bins, int64_t max_tokens,
                    struct wlb_search_packed *packed, struct wlb_error *error);
void wlb_search_packed_free(struct wlb_search_packed *packed);

/* Most tokens that a micro-batch may hold whose share of the batch is `windows` windows. */
int64_t wlb_search_limit(const struct wlb_search *search, double windows);

/* Tokens of the longest micro-batch that packing the samples makes where the share of each is `windows` windows: from a
 * table of packed steps, by the larger ratio of the two nearest. Returns -1 if out of memory. */
int wlb_search_longest(struct wlb_search *search, double windows, int64_t *tokens, struct wlb_error *error);

#endif

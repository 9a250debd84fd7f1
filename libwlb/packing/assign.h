/* Dealing pieces to bins: most work first to the lightest with room (Graham 1969), then exchanges. */
#ifndef LIBWLB_PACKING_ASSIGN_H
#define LIBWLB_PACKING_ASSIGN_H

#include "libwlb/packing/bins.h"

struct wlb_item {
	struct wlb_span span;
	double work;
	int64_t came_step;
	int32_t bin; /* -1: in none */
};

/* An item by its place in the array, ranked by work. */
struct wlb_rank {
	double work;
	size_t item;
};

struct wlb_deal {
	struct wlb_bins bins;
	struct wlb_item *items; /* `count` of `capacity`; the order they came in */
	size_t count;
	size_t capacity;
	struct wlb_rank *ranks; /* `ranked` of `capacity`: the items that take part */
	size_t ranked;
	size_t *head; /* of each bin's chain of items, most work first; while refining */
	size_t *next;
	struct wlb_room head_room;
};

/* No items and empty bins, in the memory of the last use where there was one; zero it before the first. -1 without
 * memory: to be freed, or initialized again. A zeroed deal may be freed. */
int wlb_deal_init(struct wlb_deal *deal, int32_t bins, int64_t max_tokens);
void wlb_deal_free(struct wlb_deal *deal);

/* Room for `capacity` items; -1 without memory, the deal being as it was. */
int wlb_deal_reserve(struct wlb_deal *deal, size_t capacity);

/* Has an item take part; sort once all do: most work first, equal work in the order of the array. */
void wlb_deal_rank(struct wlb_deal *deal, size_t item);
void wlb_deal_sort(struct wlb_deal *deal);

/* Puts the ranked items that came by `came_by` and are in no bin into the lightest with room, by rank; what fits
 * nowhere stays out. */
void wlb_deal_place(struct wlb_deal *deal, int64_t came_by);

/* Moves and swaps ranked items out of the heaviest bin while that lowers it. Voids the heap of the bins. */
void wlb_deal_refine(struct wlb_deal *deal);

#endif

#include "libwlb/packing/assign.h"

#include <stdlib.h>
#include <string.h>

int wlb_deal_init(struct wlb_deal *deal, int32_t bins, int64_t max_tokens)
{
	deal->count = 0;
	deal->ranked = 0;
	deal->head = wlb_room_take(&deal->head_room, (size_t)bins, sizeof(*deal->head));
	return deal->head == NULL ? -1 : wlb_bins_init(&deal->bins, bins, max_tokens);
}

void wlb_deal_free(struct wlb_deal *deal)
{
	wlb_bins_free(&deal->bins);
	free(deal->items);
	free(deal->ranks);
	wlb_room_free(&deal->head_room);
	free(deal->next);
	memset(deal, 0, sizeof(*deal));
}

/* Grows one array; its place is updated even where a later one finds no memory, which does no harm. */
static int grow(void **array, size_t capacity, size_t size)
{
	void *grown = reallocarray(*array, capacity, size);
	if (grown == NULL)
		return -1;
	*array = grown;
	return 0;
}

int wlb_deal_reserve(struct wlb_deal *deal, size_t capacity)
{
	if (capacity <= deal->capacity)
		return 0;
	if (grow((void **)&deal->items, capacity, sizeof(*deal->items)) < 0 ||
	    grow((void **)&deal->ranks, capacity, sizeof(*deal->ranks)) < 0 ||
	    grow((void **)&deal->next, capacity, sizeof(*deal->next)) < 0)
		return -1;
	deal->capacity = capacity;
	return 0;
}

void wlb_deal_rank(struct wlb_deal *deal, size_t item)
{
	deal->ranks[deal->ranked++] = (struct wlb_rank){.work = deal->items[item].work, .item = item};
}

static int more_work_first(const void *a, const void *b)
{
	const struct wlb_rank *x = a, *y = b;
	if (x->work != y->work)
		return x->work > y->work ? -1 : 1;
	return x->item < y->item ? -1 : x->item > y->item;
}

void wlb_deal_sort(struct wlb_deal *deal)
{
	qsort(deal->ranks, deal->ranked, sizeof(*deal->ranks), more_work_first);
}

void wlb_deal_place(struct wlb_deal *deal, int64_t came_by)
{
	for (size_t r = 0; r < deal->ranked; r++) {
		struct wlb_item *item = &deal->items[deal->ranks[r].item];
		if (item->bin < 0 && item->came_step <= came_by)
			item->bin = wlb_bins_put(&deal->bins, item->span.tokens, item->work);
	}
}

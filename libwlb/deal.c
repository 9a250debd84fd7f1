#include "libwlb/deal.h"

#include <stdlib.h>
#include <string.h>

int wlb_deal_init(struct wlb_deal *deal, int32_t bins, int64_t max_tokens)
{
	memset(deal, 0, sizeof(*deal));
	deal->head = calloc((size_t)bins, sizeof(*deal->head));
	if (deal->head == NULL || wlb_bins_init(&deal->bins, bins, max_tokens) < 0) {
		wlb_deal_free(deal);
		return -1;
	}
	return 0;
}

void wlb_deal_free(struct wlb_deal *deal)
{
	wlb_bins_free(&deal->bins);
	free(deal->items);
	free(deal->ranks);
	free(deal->head);
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

enum { NO_ROOM = 1 };

static int deal_whole(struct wlb_deal *deal, double (*work)(const void *context, int64_t tokens), const void *context,
                      const int64_t *tokens, size_t count, struct wlb_error *error)
{
	for (size_t i = 0; i < count; i++) {
		if (tokens[i] < 0)
			return wlb_fail(error, "piece %zu has %lld tokens: it must not be negative", i,
			                (long long)tokens[i]);
		deal->items[i] =
			(struct wlb_item){.span.tokens = tokens[i], .work = work(context, tokens[i]), .bin = -1};
		wlb_deal_rank(deal, i);
	}
	wlb_deal_sort(deal);
	wlb_deal_place(deal, INT64_MAX);
	for (size_t i = 0; i < count; i++)
		if (deal->items[i].bin < 0) {
			wlb_fail(error, "piece %zu of %lld tokens finds no room in %d micro-batches of %lld", i,
			         (long long)tokens[i], deal->bins.count, (long long)deal->bins.max_tokens);
			return NO_ROOM;
		}
	wlb_deal_refine(deal);
	return 0;
}

int wlb_pack_balanced_by(double (*work)(const void *context, int64_t tokens), const void *work_context,
                         const int64_t *tokens, size_t count, int32_t bins, int64_t max_tokens, int32_t *bin_of,
                         struct wlb_error *error)
{
	if (bins < 1)
		return wlb_fail(error, "%d micro-batches: at least 1 is needed", bins);
	struct wlb_deal deal = {0};
	int rc = -1;
	if (wlb_deal_init(&deal, bins, max_tokens) < 0 || wlb_deal_reserve(&deal, count + 1) < 0)
		wlb_fail(error, "out of memory while packing %zu pieces", count);
	else
		rc = deal_whole(&deal, work, work_context, tokens, count, error);
	for (size_t i = 0; rc == 0 && i < count; i++)
		bin_of[i] = deal.items[i].bin;
	wlb_deal_free(&deal);
	return rc;
}

static double flops(const void *model, int64_t tokens)
{
	return wlb_cost_document(model, tokens);
}

int wlb_pack_balanced(const struct wlb_model *model, const int64_t *tokens, size_t count, int32_t bins,
                      int64_t max_tokens, int32_t *bin_of, struct wlb_error *error)
{
	return wlb_pack_balanced_by(flops, model, tokens, count, bins, max_tokens, bin_of, error) == 0 ? 0 : -1;
}

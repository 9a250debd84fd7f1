/* What the balanced strategy is compared with. */
#include "libwlb/packing/packer.h"

/* Concatenates all that came and cuts at every multiple of the window. */
void wlb_packer_plain(struct wlb_packer *packer)
{
	struct wlb_deal *deal = &packer->deal;
	size_t whole = deal->count;
	int32_t bin = 0;
	for (size_t i = 0; i < whole; i++)
		while (deal->items[i].bin < 0) {
			int64_t room = deal->bins.max_tokens - deal->bins.loads[bin].tokens;
			if (room == 0)
				bin++;
			else
				wlb_packer_cut(packer, i,
				               room < deal->items[i].span.tokens ? room : deal->items[i].span.tokens,
				               bin);
		}
}

static void rank_all(struct wlb_deal *deal)
{
	for (size_t i = 0; i < deal->count; i++)
		wlb_deal_rank(deal, i);
	wlb_deal_sort(deal);
}

/* Most work first to the lightest with room in the window; what fits nowhere whole fills the rooms left. */
void wlb_packer_fixed(struct wlb_packer *packer)
{
	rank_all(&packer->deal);
	wlb_deal_place(&packer->deal, INT64_MAX);
	wlb_packer_cut_rest(packer, INT64_MAX);
}

/* Has the N oldest documents of a full queue, those of (over, up_to] tokens, take part in the step; at the end of
 * the data the queue need not be full. */
static void release_queue(struct wlb_packer *packer, int64_t over, int64_t up_to)
{
	struct wlb_deal *deal = &packer->deal;
	size_t waiting = 0, bins = (size_t)deal->bins.count;
	for (size_t i = 0; i < deal->count; i++)
		waiting += deal->items[i].span.tokens > over && deal->items[i].span.tokens <= up_to;
	if (waiting < bins && packer->batch_tokens > 0)
		return;
	for (size_t i = 0, released = 0; i < deal->count && released < bins; i++)
		if (deal->items[i].span.tokens > over && deal->items[i].span.tokens <= up_to) {
			wlb_deal_rank(deal, i);
			released++;
		}
}

/* Into the lightest micro-batch if it has room, else into the shortest, else kept for the next step. */
static int32_t greedy_bin(const struct wlb_bins *bins, int64_t tokens)
{
	int32_t lightest = 0, shortest = wlb_bins_roomiest(bins);
	for (int32_t b = 1; b < bins->count; b++)
		if (bins->loads[b].work < bins->loads[lightest].work)
			lightest = b;
	if (bins->loads[lightest].tokens + tokens <= bins->max_tokens)
		return lightest;
	return bins->loads[shortest].tokens + tokens <= bins->max_tokens ? shortest : -1;
}

/* WLB-LLM (Wang et al., OSDI 2025), algorithm 1, with two queues. */
void wlb_packer_greedy(struct wlb_packer *packer)
{
	struct wlb_deal *deal = &packer->deal;
	int64_t window = packer->options.seq_length, first = window / 4, second = window / 2;
	for (size_t i = 0; i < deal->count; i++)
		if (deal->items[i].span.tokens <= first)
			wlb_deal_rank(deal, i);
	release_queue(packer, first, second);
	release_queue(packer, second, window);
	wlb_deal_sort(deal);
	for (size_t r = 0; r < deal->ranked; r++) {
		struct wlb_item *item = &deal->items[deal->ranks[r].item];
		item->bin = greedy_bin(&deal->bins, item->span.tokens);
		if (item->bin >= 0)
			wlb_bins_add(&deal->bins, item->bin, item->span.tokens, item->work);
	}
}

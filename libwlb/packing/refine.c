#include "libwlb/packing/assign.h"

#define NONE SIZE_MAX

/* Exchanges end where the heaviest bin is this close to the mean, and after this many a bin at the latest. */
static const double close_enough = 1e-4;
enum { MOST_EXCHANGES = 8 };

/* `out` leaves the heaviest bin for bin `to`, `in` (or nothing) comes back for it. */
struct exchange {
	size_t out;
	size_t in;
	int32_t to;
	double gain; /* how far the heavier of the two bins sinks */
};

static void chain_all(struct wlb_deal *deal)
{
	for (int32_t b = 0; b < deal->bins.count; b++)
		deal->head[b] = NONE;
	for (size_t r = deal->ranked; r-- > 0;) {
		size_t item = deal->ranks[r].item;
		int32_t bin = deal->items[item].bin;
		if (bin < 0)
			continue;
		deal->next[item] = deal->head[bin];
		deal->head[bin] = item;
	}
}

static void consider(const struct wlb_deal *deal, double gap, struct exchange now, struct exchange *best)
{
	double work = deal->items[now.out].work;
	int64_t tokens = deal->items[now.out].span.tokens;
	if (now.in != NONE) {
		work -= deal->items[now.in].work;
		tokens -= deal->items[now.in].span.tokens;
	}
	if (deal->bins.loads[now.to].tokens + tokens > deal->bins.max_tokens)
		return;
	now.gain = work < gap - work ? work : gap - work;
	if (now.gain > best->gain)
		*best = now;
}

/* Half the gap is what should pass over. Both chains fall, so that the partner looked for only moves on. */
static void try_pair(const struct wlb_deal *deal, int32_t from, int32_t to, struct exchange *best)
{
	double gap = deal->bins.loads[from].work - deal->bins.loads[to].work;
	size_t above = NONE, below = deal->head[to];
	for (size_t out = deal->head[from]; out != NONE; out = deal->next[out]) {
		double wanted = deal->items[out].work - gap / 2.0;
		while (below != NONE && deal->items[below].work > wanted) {
			above = below;
			below = deal->next[below];
		}
		consider(deal, gap, (struct exchange){.out = out, .in = below, .to = to}, best);
		if (above != NONE)
			consider(deal, gap, (struct exchange){.out = out, .in = above, .to = to}, best);
	}
}

static void unchain(struct wlb_deal *deal, size_t item)
{
	size_t *link = &deal->head[deal->items[item].bin];
	while (*link != item)
		link = &deal->next[*link];
	*link = deal->next[item];
}

static void chain(struct wlb_deal *deal, size_t item, int32_t bin)
{
	size_t *link = &deal->head[bin];
	while (*link != NONE && deal->items[*link].work > deal->items[item].work)
		link = &deal->next[*link];
	deal->next[item] = *link;
	*link = item;
}

static void carry(struct wlb_deal *deal, size_t item, int32_t to)
{
	struct wlb_item *it = &deal->items[item];
	unchain(deal, item);
	wlb_bins_add(&deal->bins, it->bin, -it->span.tokens, -it->work);
	wlb_bins_add(&deal->bins, to, it->span.tokens, it->work);
	chain(deal, item, to);
	it->bin = to;
}

/* The best exchange of the heaviest bin with the lightest, or else with any. */
static struct exchange find_exchange(const struct wlb_deal *deal, int32_t heaviest, int32_t lightest, double least_gain)
{
	struct exchange best = {.gain = least_gain, .to = -1};
	try_pair(deal, heaviest, lightest, &best);
	for (int32_t b = 0; best.to < 0 && b < deal->bins.count; b++)
		if (b != heaviest && b != lightest)
			try_pair(deal, heaviest, b, &best);
	return best;
}

void wlb_deal_refine(struct wlb_deal *deal)
{
	const struct wlb_load *loads = deal->bins.loads;
	double mean = 0.0;
	for (int32_t b = 0; b < deal->bins.count; b++)
		mean += loads[b].work / deal->bins.count;
	chain_all(deal);
	for (int round = 0; round < MOST_EXCHANGES * deal->bins.count; round++) {
		int32_t heaviest = 0, lightest = 0;
		for (int32_t b = 1; b < deal->bins.count; b++) {
			heaviest = loads[b].work > loads[heaviest].work ? b : heaviest;
			lightest = loads[b].work < loads[lightest].work ? b : lightest;
		}
		if (loads[heaviest].work <= mean * (1.0 + close_enough))
			return;
		struct exchange best = find_exchange(deal, heaviest, lightest, mean * close_enough / 8.0);
		if (best.to < 0)
			return;
		carry(deal, best.out, best.to);
		if (best.in != NONE)
			carry(deal, best.in, heaviest);
	}
}

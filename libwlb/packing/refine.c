/* Exchanges spans of the heaviest bin until no exchange lowers its work. */
#include "libwlb/packing/assign.h"

#define NONE SIZE_MAX

/* Exchanges end when the work of the heaviest bin is at most this share above the mean, or after MOST_EXCHANGES for
 * each bin. */
static const double close_enough = 1e-4;
enum { MOST_EXCHANGES = 8 };

/* `out` moves from the heaviest bin to bin `to`, and `in`, if any, moves back. */
struct exchange {
	size_t out;
	size_t in;
	int32_t to;
	double gain; /* decrease of the work of the heavier of the two bins */
};

static void build_chains(struct wlb_assignment *assignment)
{
	for (int32_t b = 0; b < assignment->bins.count; b++)
		assignment->head[b] = NONE;
	for (size_t r = assignment->ordered; r-- > 0;) {
		size_t span = assignment->order[r].span;
		int32_t bin = assignment->spans[span].bin;
		if (bin < 0)
			continue;
		assignment->next[span] = assignment->head[bin];
		assignment->head[bin] = span;
	}
}

static void evaluate(const struct wlb_assignment *assignment, double gap, struct exchange now, struct exchange *best)
{
	double work = assignment->spans[now.out].work;
	int64_t tokens = assignment->spans[now.out].span.tokens;
	if (now.in != NONE) {
		work -= assignment->spans[now.in].work;
		tokens -= assignment->spans[now.in].span.tokens;
	}
	if (assignment->bins.loads[now.to].tokens + tokens > assignment->bins.max_tokens)
		return;
	now.gain = work < gap - work ? work : gap - work;
	if (now.gain > best->gain)
		*best = now;
}

/* Finds the best exchange between two bins. The ideal one moves half the difference in work. Both chains are in
 * descending order, so that the search for the span that moves back only moves forward. */
static void find_best_with(const struct wlb_assignment *assignment, int32_t from, int32_t to, struct exchange *best)
{
	double gap = assignment->bins.loads[from].work - assignment->bins.loads[to].work;
	size_t above = NONE, below = assignment->head[to];
	for (size_t out = assignment->head[from]; out != NONE; out = assignment->next[out]) {
		double wanted = assignment->spans[out].work - gap / 2.0;
		while (below != NONE && assignment->spans[below].work > wanted) {
			above = below;
			below = assignment->next[below];
		}
		evaluate(assignment, gap, (struct exchange){.out = out, .in = below, .to = to}, best);
		if (above != NONE)
			evaluate(assignment, gap, (struct exchange){.out = out, .in = above, .to = to}, best);
	}
}

static void remove_from_chain(struct wlb_assignment *assignment, size_t span)
{
	size_t *link = &assignment->head[assignment->spans[span].bin];
	while (*link != span)
		link = &assignment->next[*link];
	*link = assignment->next[span];
}

static void insert_in_chain(struct wlb_assignment *assignment, size_t span, int32_t bin)
{
	size_t *link = &assignment->head[bin];
	while (*link != NONE && assignment->spans[*link].work > assignment->spans[span].work)
		link = &assignment->next[*link];
	assignment->next[span] = *link;
	*link = span;
}

static void move_span(struct wlb_assignment *assignment, size_t span, int32_t to)
{
	struct wlb_assigned_span *moved = &assignment->spans[span];
	remove_from_chain(assignment, span);
	wlb_bins_add(&assignment->bins, moved->bin, -moved->span.tokens, -moved->work);
	wlb_bins_add(&assignment->bins, to, moved->span.tokens, moved->work);
	insert_in_chain(assignment, span, to);
	moved->bin = to;
}

/* Finds the best exchange of the heaviest bin with the lightest, or, if there is none, with any other. */
static struct exchange find_exchange(const struct wlb_assignment *assignment, int32_t heaviest, int32_t lightest,
                                     double least_gain)
{
	struct exchange best = {.gain = least_gain, .to = -1};
	find_best_with(assignment, heaviest, lightest, &best);
	for (int32_t b = 0; best.to < 0 && b < assignment->bins.count; b++)
		if (b != heaviest && b != lightest)
			find_best_with(assignment, heaviest, b, &best);
	return best;
}

void wlb_assignment_refine(struct wlb_assignment *assignment)
{
	const struct wlb_load *loads = assignment->bins.loads;
	double mean = 0.0;
	for (int32_t b = 0; b < assignment->bins.count; b++)
		mean += loads[b].work / assignment->bins.count;
	build_chains(assignment);
	for (int round = 0; round < MOST_EXCHANGES * assignment->bins.count; round++) {
		int32_t heaviest = 0, lightest = 0;
		for (int32_t b = 1; b < assignment->bins.count; b++) {
			heaviest = loads[b].work > loads[heaviest].work ? b : heaviest;
			lightest = loads[b].work < loads[lightest].work ? b : lightest;
		}
		if (loads[heaviest].work <= mean * (1.0 + close_enough))
			return;
		struct exchange best = find_exchange(assignment, heaviest, lightest, mean * close_enough / 8.0);
		if (best.to < 0)
			return;
		move_span(assignment, best.out, best.to);
		if (best.in != NONE)
			move_span(assignment, best.in, heaviest);
	}
}

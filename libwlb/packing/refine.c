/* Exchanges spans of the heaviest bin with those of light ones while that lowers its work. */
#include "libwlb/packing/assign.h"

#include <stdlib.h>

#define NONE SIZE_MAX

/* Exchanges end when the work of the heaviest bin is at most this share above the mean, or after EXCHANGES_MAX for
 * each bin, or after STEPS_FOR_EACH steps through chains for each span and each bin: the time of a refinement must not
 * grow with the square of the bins. The bins that are tried are the lightest and, where it offers no exchange,
 * OTHERS_MAX more. */
static const double close_enough = 1e-4;
enum { EXCHANGES_MAX = 8, STEPS_FOR_EACH = 512, OTHERS_MAX = 64 };

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
	const struct wlb_load *from = &assignment->bins.loads[assignment->spans[now.out].bin];
	const struct wlb_load *to = &assignment->bins.loads[now.to];
	int64_t most = assignment->bins.max_tokens;
	if (tokens > most - to->tokens || -tokens > most - from->tokens)
		return;
	now.gain = work < gap - work ? work : gap - work;
	if (now.gain > best->gain)
		*best = now;
}

/* Finds the best exchange between two bins. The ideal one moves half the difference in work. Both chains are in
 * descending order, so that the search for the span that moves back only moves forward. */
static void find_best_with(struct wlb_assignment *assignment, int32_t from, int32_t to, struct exchange *best)
{
	double gap = assignment->bins.loads[from].work - assignment->bins.loads[to].work;
	size_t above = NONE, below = assignment->head[to];
	for (size_t out = assignment->head[from]; out != NONE; out = assignment->next[out]) {
		double wanted = assignment->spans[out].work - gap / 2.0;
		assignment->steps++;
		while (below != NONE && assignment->spans[below].work > wanted) {
			assignment->steps++;
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

static int number_order(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
	return x < y ? -1 : x > y;
}

/* Lists, by number, the OTHERS_MAX bins that are lightest after the lightest. */
static int list_next_lightest(struct wlb_assignment *assignment, int32_t lightest, int32_t *others)
{
	struct wlb_bin_tree *tree = &assignment->lightest;
	wlb_bin_tree_take(tree, lightest);
	for (int i = 0; i < OTHERS_MAX; i++) {
		others[i] = wlb_bin_tree_first(tree);
		wlb_bin_tree_take(tree, others[i]);
	}
	for (int i = 0; i < OTHERS_MAX; i++)
		wlb_bin_tree_put(tree, others[i]);
	wlb_bin_tree_put(tree, lightest);
	qsort(others, OTHERS_MAX, sizeof(*others), number_order);
	return OTHERS_MAX;
}

/* The order decides which exchange is found first: by number, few bins are packed as they were by versions that tried
 * all bins. */
static int list_others(struct wlb_assignment *assignment, int32_t lightest, int32_t *others)
{
	int count = 0;
	if (assignment->bins.count > OTHERS_MAX + 1)
		return list_next_lightest(assignment, lightest, others);
	for (int32_t b = 0; b < assignment->bins.count; b++)
		if (b != lightest)
			others[count++] = b;
	return count;
}

/* Finds an exchange of the heaviest bin: the best with the lightest, or, if there is none, with the first of a few
 * other light ones that has one. */
static struct exchange find_exchange(struct wlb_assignment *assignment, int32_t heaviest, double least_gain)
{
	struct exchange best = {.gain = least_gain, .to = -1};
	int32_t lightest = wlb_bin_tree_first(&assignment->lightest), others[OTHERS_MAX];
	find_best_with(assignment, heaviest, lightest, &best);
	if (best.to >= 0)
		return best;
	int count = list_others(assignment, lightest, others);
	for (int i = 0; i < count && best.to < 0; i++)
		if (others[i] != heaviest)
			find_best_with(assignment, heaviest, others[i], &best);
	return best;
}

static void apply_exchange(struct wlb_assignment *assignment, int32_t heaviest, const struct exchange *exchange)
{
	move_span(assignment, exchange->out, exchange->to);
	if (exchange->in != NONE)
		move_span(assignment, exchange->in, heaviest);
	const int32_t changed[] = {heaviest, exchange->to};
	for (int i = 0; i < 2; i++) {
		wlb_bin_tree_put(&assignment->lightest, changed[i]);
		wlb_bin_tree_put(&assignment->heaviest, changed[i]);
	}
}

void wlb_assignment_refine(struct wlb_assignment *assignment)
{
	const struct wlb_load *loads = assignment->bins.loads;
	int64_t bins = assignment->bins.count;
	double mean = 0.0;
	for (int32_t b = 0; b < bins; b++)
		mean += loads[b].work / (double)bins;
	build_chains(assignment);
	wlb_bin_tree_build(&assignment->lightest, loads, assignment->bins.count, wlb_less_work);
	wlb_bin_tree_build(&assignment->heaviest, loads, assignment->bins.count, wlb_more_work);
	assignment->steps = 0;
	int64_t most_steps = STEPS_FOR_EACH * ((int64_t)assignment->ordered + bins);
	for (int64_t round = 0; round < EXCHANGES_MAX * bins && assignment->steps < most_steps; round++) {
		int32_t heaviest = wlb_bin_tree_first(&assignment->heaviest);
		if (loads[heaviest].work <= mean * (1.0 + close_enough))
			return;
		struct exchange best = find_exchange(assignment, heaviest, mean * close_enough / 8.0);
		if (best.to < 0)
			return;
		apply_exchange(assignment, heaviest, &best);
	}
}

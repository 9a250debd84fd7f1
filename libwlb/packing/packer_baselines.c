/* The strategies beside balanced: its baselines, and dynamic. */
#include "libwlb/packing/packer_spans.h"

/* Concatenates the batch and cuts it at every multiple of the window, where one micro-batch ends and the next begins.
 */
void wlb_packer_plain(struct wlb_packer *packer)
{
	struct wlb_assignment *assignment = &packer->assignment;
	size_t whole = assignment->count;
	int32_t bin = 0;
	for (size_t i = 0; i < whole; i++)
		while (assignment->spans[i].bin < 0) {
			int64_t space = assignment->bins.max_tokens - assignment->bins.loads[bin].tokens;
			if (space == 0)
				bin++;
			else
				wlb_packer_cut(packer, i,
				               space < assignment->spans[i].span.tokens
				                       ? space
				                       : assignment->spans[i].span.tokens,
				               bin);
		}
}

static void rank_all(struct wlb_assignment *assignment)
{
	for (size_t i = 0; i < assignment->count; i++)
		wlb_assignment_add(assignment, i);
	wlb_assignment_sort(assignment);
}

/* Assigns the span with the most work first, to the lightest micro-batch with space in the window; a span that fits in
 * none as a whole is cut to fill the space left. */
void wlb_packer_fixed(struct wlb_packer *packer)
{
	rank_all(&packer->assignment);
	wlb_assignment_place(&packer->assignment, INT64_MAX);
	wlb_packer_cut_rest(packer, INT64_MAX);
}

/* Assigns the span with the most work first, to the lightest micro-batch, whatever its tokens. */
void wlb_packer_dynamic(struct wlb_packer *packer)
{
	rank_all(&packer->assignment);
	wlb_assignment_place(&packer->assignment, INT64_MAX);
}

/* Adds the N oldest documents of a full queue, which holds those of (over, up_to] tokens, to the step; at the end of
 * the data the queue need not be full. */
static void release_queue(struct wlb_packer *packer, int64_t over, int64_t up_to)
{
	struct wlb_assignment *assignment = &packer->assignment;
	size_t waiting = 0, bins = (size_t)assignment->bins.count;
	for (size_t i = 0; i < assignment->count; i++)
		waiting += assignment->spans[i].span.tokens > over && assignment->spans[i].span.tokens <= up_to;
	if (waiting < bins && packer->batch_tokens > 0)
		return;
	for (size_t i = 0, released = 0; i < assignment->count && released < bins; i++)
		if (assignment->spans[i].span.tokens > over && assignment->spans[i].span.tokens <= up_to) {
			wlb_assignment_add(assignment, i);
			released++;
		}
}

/* Into the lightest micro-batch if it has space, else into the shortest, else kept for the next step. */
static int32_t greedy_bin(const struct wlb_assignment *assignment, int64_t tokens)
{
	const struct wlb_bins *bins = &assignment->bins;
	int32_t lightest = wlb_bin_tree_first(&assignment->lightest);
	int32_t shortest = wlb_bin_tree_first(&assignment->emptiest);
	if (tokens <= bins->max_tokens - bins->loads[lightest].tokens)
		return lightest;
	return tokens <= bins->max_tokens - bins->loads[shortest].tokens ? shortest : -1;
}

static void greedy_place(struct wlb_assignment *assignment, struct wlb_assigned_span *assigned)
{
	int32_t bin = greedy_bin(assignment, assigned->span.tokens);
	assigned->bin = bin;
	if (bin < 0)
		return;
	wlb_bins_add(&assignment->bins, bin, assigned->span.tokens, assigned->work);
	wlb_bin_tree_put(&assignment->lightest, bin);
	wlb_bin_tree_put(&assignment->emptiest, bin);
}

/* WLB-LLM (Wang et al., OSDI 2025), algorithm 1, with two queues. */
void wlb_packer_greedy(struct wlb_packer *packer)
{
	struct wlb_assignment *assignment = &packer->assignment;
	int64_t window = packer->options.seq_length, first = window / 4, second = window / 2;
	for (size_t i = 0; i < assignment->count; i++)
		if (assignment->spans[i].span.tokens <= first)
			wlb_assignment_add(assignment, i);
	release_queue(packer, first, second);
	release_queue(packer, second, window);
	wlb_assignment_sort(assignment);
	wlb_bin_tree_build(&assignment->lightest, assignment->bins.loads, assignment->bins.count, wlb_less_work);
	wlb_bin_tree_build(&assignment->emptiest, assignment->bins.loads, assignment->bins.count, wlb_fewer_tokens);
	for (size_t r = 0; r < assignment->ordered; r++)
		greedy_place(assignment, &assignment->spans[assignment->order[r].span]);
}

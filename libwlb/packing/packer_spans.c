#include "libwlb/packing/packer_spans.h"

double wlb_packer_work(const struct wlb_packer *packer, int64_t tokens)
{
	if (packer->options.work != NULL)
		return packer->options.work(packer->options.work_context, tokens);
	return wlb_cost_document(&packer->model, tokens);
}

void wlb_packer_weigh(struct wlb_packer *packer, struct wlb_assigned_span *assigned)
{
	int64_t window = packer->options.seq_length;
	int64_t tokens = assigned->span.tokens < window ? assigned->span.tokens : window;
	assigned->work = wlb_packer_work(packer, tokens);
	struct wlb_error *refusal = packer->refused ? NULL : &packer->refusal;
	if (wlb_work_check(assigned->work, tokens, "document", assigned->span.document, refusal) == 0)
		return;
	packer->refused = 1;
	assigned->work = 1.0;
}

void wlb_packer_cut(struct wlb_packer *packer, size_t span, int64_t tokens, int32_t bin)
{
	struct wlb_assignment *assignment = &packer->assignment;
	struct wlb_assigned_span *whole = &assignment->spans[span];
	if (tokens < whole->span.tokens) {
		struct wlb_assigned_span *part = &assignment->spans[assignment->count++];
		packer->cuts += !whole->is_part;
		whole->is_part = 1;
		*part = *whole;
		part->span.tokens = tokens;
		wlb_packer_weigh(packer, part);
		whole->span.start += tokens;
		whole->span.tokens -= tokens;
		wlb_packer_weigh(packer, whole);
		whole = part;
	}
	whole->bin = bin;
	wlb_bins_add(&assignment->bins, bin, whole->span.tokens, whole->work);
}

void wlb_packer_cut_rest(struct wlb_packer *packer, int64_t arrived_by)
{
	struct wlb_assignment *assignment = &packer->assignment;
	struct wlb_bin_tree *emptiest = &assignment->emptiest;
	wlb_bin_tree_build(emptiest, assignment->bins.loads, assignment->bins.count, wlb_fewer_tokens);
	for (size_t r = 0; r < assignment->ordered; r++) {
		const struct wlb_assigned_span *assigned = &assignment->spans[assignment->order[r].span];
		while (assigned->bin < 0 && assigned->arrival_step <= arrived_by) {
			int32_t bin = wlb_bin_tree_first(emptiest);
			int64_t space = assignment->bins.max_tokens - assignment->bins.loads[bin].tokens;
			if (space <= 0)
				break;
			wlb_packer_cut(packer, assignment->order[r].span,
			               space < assigned->span.tokens ? space : assigned->span.tokens, bin);
			wlb_bin_tree_put(emptiest, bin);
		}
	}
	wlb_bins_heapify(&assignment->bins);
}

int wlb_packer_reserve(struct wlb_packer *packer, size_t spans, struct wlb_error *error)
{
	size_t least = packer->assignment.count + spans + (size_t)packer->options.micro_batches + 1;
	if (wlb_grow((void **)&packer->packed, &packer->packed_capacity, least, sizeof(*packer->packed)) < 0 ||
	    wlb_grow((void **)&packer->held, &packer->held_capacity, least, sizeof(*packer->held)) < 0 ||
	    wlb_assignment_reserve(&packer->assignment, least) < 0)
		return wlb_fail(error, "out of memory while packing %zu spans", least);
	return 0;
}

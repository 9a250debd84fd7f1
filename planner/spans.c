#include "planner/spans.h"

static int64_t spans_of(int64_t tokens, int64_t seq_length)
{
	return tokens < 2 ? 0 : (tokens - 2) / seq_length + 1;
}

static int64_t count_spans(const struct wlb_length_list *documents, int64_t seq_length)
{
	int64_t all = 0;
	for (size_t d = 0; d < documents->count; d++)
		all += spans_of(documents->tokens[d], seq_length);
	return all;
}

int wlb_spans_of_documents(const struct wlb_length_list *documents, int64_t seq_length, struct wlb_length_list *spans,
                           struct wlb_error *error)
{
	int64_t all = count_spans(documents, seq_length), before = 0;
	int64_t taken = all < WLB_SPANS_MOST ? all : WLB_SPANS_MOST;
	size_t d = 0, first = spans->count;
	if (all == 0)
		return wlb_fail(error,
		                "none of %zu documents has two tokens, which training needs (an input and a target); "
		                "give longer documents",
		                documents->count);
	for (int64_t i = 0; i < taken; i++) {
		int64_t at = (int64_t)((double)all * (double)i / (double)taken);
		while (at >= before + spans_of(documents->tokens[d], seq_length))
			before += spans_of(documents->tokens[d++], seq_length);
		int64_t left = documents->tokens[d] - 1 - (at - before) * seq_length;
		if (wlb_length_list_add(spans, left < seq_length ? left : seq_length, error) < 0)
			return -1;
	}
	wlb_length_list_shuffle(spans, first);
	return 0;
}

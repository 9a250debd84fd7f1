#include "libwlb/wlb.h"

#include <stdlib.h>

struct span {
	int32_t index;
	int32_t tokens;
};

/* Longest first; the index breaks ties, so that equal inputs give equal outputs. */
static int longer_first(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	if (x->tokens != y->tokens)
		return x->tokens > y->tokens ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

struct bin {
	double work;
	int64_t tokens;
};

/* The bin with the least work among those that still have room, or -1. */
static int lightest_with_room(const struct bin *bins, int count, int64_t tokens, int64_t max_tokens)
{
	int best = -1;
	for (int b = 0; b < count; b++)
		if (bins[b].tokens + tokens <= max_tokens && (best < 0 || bins[b].work < bins[best].work))
			best = b;
	return best;
}

int wlb_pack_greedy(const struct wlb_model *model, const int32_t *lengths, int count, int bins, int64_t max_tokens,
                    int32_t *bin_of, struct wlb_error *error)
{
	if (bins < 1)
		return wlb_fail(error, "%d micro-batches: at least 1 is needed", bins);
	struct span *spans = malloc(((size_t)count + 1) * sizeof(*spans));
	struct bin *loads = calloc((size_t)bins, sizeof(*loads));
	int rc = 0;
	if (spans == NULL || loads == NULL)
		rc = wlb_fail(error, "out of memory while packing %d documents", count);
	for (int i = 0; rc == 0 && i < count; i++) {
		spans[i] = (struct span){.index = i, .tokens = lengths[i]};
		if (lengths[i] < 0 || lengths[i] > max_tokens)
			rc = wlb_fail(error, "document %d has %d tokens: a micro-batch holds 0 to %lld", i, lengths[i],
			              (long long)max_tokens);
	}
	if (rc == 0)
		qsort(spans, (size_t)count, sizeof(*spans), longer_first);
	for (int i = 0; rc == 0 && i < count; i++) {
		int b = lightest_with_room(loads, bins, spans[i].tokens, max_tokens);
		if (b < 0) {
			rc = wlb_fail(error, "%d documents do not fit %d micro-batches of %lld tokens", count, bins,
			              (long long)max_tokens);
			break;
		}
		loads[b].work += wlb_cost_document(model, spans[i].tokens);
		loads[b].tokens += spans[i].tokens;
		bin_of[spans[i].index] = b;
	}
	free(loads);
	free(spans);
	return rc;
}

/* Documents of the samples, packed into micro-batches. */
#include "libwlb/layout/search_pack.h"

#include <math.h>
#include <stdlib.h>

/* Micro-batches that are packed to find how long the longest is. */
enum { MEASURED_MICRO_BATCHES = 64 };

void wlb_search_packed_free(struct wlb_search_packed *packed)
{
	free(packed->tokens);
	free(packed->bin_of);
	free(packed->spans);
}

/* Takes documents of the samples up to `wanted` tokens, starting again from the first where there are too few. */
static int take_documents(const struct wlb_search *search, double wanted, struct wlb_search_packed *packed)
{
	double mean = 0.0, sum = 0.0;
	for (size_t i = 0; i < search->documents; i++)
		mean += (double)search->tokens[i] / (double)search->documents;
	size_t capacity = (size_t)(wanted / mean * 2.0) + search->documents + 16;
	packed->tokens = calloc(capacity, sizeof(*packed->tokens));
	packed->bin_of = calloc(capacity, sizeof(*packed->bin_of));
	packed->spans = calloc(capacity, sizeof(*packed->spans));
	if (packed->tokens == NULL || packed->bin_of == NULL || packed->spans == NULL)
		return -1;
	for (size_t i = 0; packed->count < capacity; i = (i + 1) % search->documents) {
		if (sum + (double)search->tokens[i] > wanted && packed->count > 0)
			break;
		packed->tokens[packed->count++] = search->tokens[i];
		sum += (double)search->tokens[i];
	}
	return 0;
}

/* Puts the spans in the order of micro-batches; finds the longest of these. */
static int sort_spans(struct wlb_search_packed *packed, int32_t bins)
{
	size_t *next = calloc((size_t)bins + 1, sizeof(*next));
	int64_t *length = calloc((size_t)bins, sizeof(*length));
	for (size_t i = 0; next != NULL && length != NULL && i < packed->count; i++) {
		next[packed->bin_of[i] + 1]++;
		length[packed->bin_of[i]] += packed->tokens[i];
	}
	for (int32_t b = 0; next != NULL && length != NULL && b < bins; b++) {
		next[b + 1] += next[b];
		packed->longest = length[b] > packed->longest ? length[b] : packed->longest;
	}
	for (size_t i = 0; next != NULL && length != NULL && i < packed->count; i++)
		packed->spans[next[packed->bin_of[i]]++] =
			(struct wlb_packed_span){.span = {.document = (int64_t)i, .tokens = packed->tokens[i]},
		                                 .micro_batch = packed->bin_of[i]};
	int rc = next != NULL && length != NULL ? 0 : -1;
	free(next);
	free(length);
	return rc;
}

int wlb_search_pack(const struct wlb_search *search, double tokens, int32_t bins, int64_t max_tokens,
                    struct wlb_search_packed *packed, struct wlb_error *error)
{
	*packed = (struct wlb_search_packed){0};
	if (take_documents(search, tokens, packed) < 0)
		return wlb_fail(error, "out of memory for the documents of %d micro-batches", bins);
	if (wlb_pack_balanced(&search->model, packed->tokens, packed->count, bins, max_tokens, packed->bin_of, NULL) <
	    0)
		return 1;
	if (sort_spans(packed, bins) < 0)
		return wlb_fail(error, "out of memory for the documents of %d micro-batches", bins);
	return 0;
}

int64_t wlb_search_limit(const struct wlb_search *search, double windows)
{
	const struct wlb_search_options *o = &search->options;
	return (int64_t)ceil((double)o->seq_length * fmax(1.0, windows) * o->max_length_ratio);
}

/* The longest micro-batch at a step of the table, as a multiple of the mean micro-batch; the limit where documents do
 * not fit. */
static int measure(struct wlb_search *search, int step, double *ratio, struct wlb_error *error)
{
	double windows = exp2((double)step / WLB_SEARCH_PACK_STEPS + WLB_SEARCH_PACK_FIRST);
	double mean = windows * (double)search->options.seq_length;
	struct wlb_search_packed packed;
	int rc = wlb_search_pack(search, mean * MEASURED_MICRO_BATCHES, MEASURED_MICRO_BATCHES,
	                         wlb_search_limit(search, windows), &packed, error);
	*ratio = (double)(rc == 0 ? packed.longest : wlb_search_limit(search, windows)) / mean;
	wlb_search_packed_free(&packed);
	return rc < 0 ? -1 : 0;
}

int wlb_search_longest(struct wlb_search *search, double windows, int64_t *tokens, struct wlb_error *error)
{
	int64_t limit = wlb_search_limit(search, windows);
	double ratio = 0.0, at = (log2(windows) - WLB_SEARCH_PACK_FIRST) * WLB_SEARCH_PACK_STEPS;
	int low = at > 0.0 ? (int)at : 0;
	*tokens = limit;
	if (search->options.charge_limit || at >= WLB_SEARCH_PACK_TABLE - 1)
		return 0;
	/* The ratio falls as micro-batches grow, but not from each step to the next. */
	for (int step = low; step <= low + (at > low); step++) {
		double *found = &search->longest_ratio[step];
		if (*found == 0.0 && measure(search, step, found, error) < 0)
			return -1;
		ratio = fmax(ratio, *found);
	}
	double mean = fmax(windows, exp2(WLB_SEARCH_PACK_FIRST)) * (double)search->options.seq_length;
	*tokens = (int64_t)ceil(ratio * mean);
	*tokens = *tokens < limit ? *tokens : limit;
	return 0;
}

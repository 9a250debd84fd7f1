/* Documents of the samples, packed into micro-batches. */
#include "libwlb/layout/search_pack.h"

#include <math.h>
#include <stdlib.h>

/* Micro-batches that are packed to find how long the longest is. */
enum { MEASURED_MICRO_BATCHES = 64 };

/* Document j of `count` that together have the lengths of all documents of the samples, which are sorted. */
static int64_t length_of(const struct wlb_search *search, size_t j, size_t count)
{
	return search->tokens[(size_t)(((double)j + 0.5) * (double)search->documents / (double)count)];
}

static double sum_of(const struct wlb_search *search, size_t count)
{
	double sum = 0.0;
	for (size_t j = 0; j < count; j++)
		sum += (double)length_of(search, j, count);
	return sum;
}

/* Takes as many documents as have at most `wanted` tokens, at equal distances of the sorted ones, so that a plan's step
 * does not depend on which part of the samples is simulated. */
static int take_documents(const struct wlb_search *search, double wanted, struct wlb_search_packing *packing)
{
	double mean = sum_of(search, search->documents) / (double)search->documents;
	size_t count = (size_t)(wanted / mean);
	count = count > 1 ? count : 1;
	for (double sum; count > 1 && (sum = sum_of(search, count)) > wanted;) {
		size_t fewer = (size_t)((double)count * wanted / sum);
		count = fewer < count ? fewer : count - 1;
		count = count > 1 ? count : 1;
	}
	packing->tokens = calloc(count, sizeof(*packing->tokens));
	packing->bin_of = calloc(count, sizeof(*packing->bin_of));
	packing->spans = calloc(count, sizeof(*packing->spans));
	if (packing->tokens == NULL || packing->bin_of == NULL || packing->spans == NULL)
		return -1;
	for (; packing->count < count; packing->count++)
		packing->tokens[packing->count] = length_of(search, packing->count, count);
	return 0;
}

/* Puts the spans in the order of micro-batches; finds the longest of these. */
static int sort_spans(struct wlb_search_packing *packing, int32_t bins)
{
	size_t *next = calloc((size_t)bins + 1, sizeof(*next));
	int64_t *length = calloc((size_t)bins, sizeof(*length));
	for (size_t i = 0; next != NULL && length != NULL && i < packing->count; i++) {
		next[packing->bin_of[i] + 1]++;
		length[packing->bin_of[i]] += packing->tokens[i];
	}
	for (int32_t b = 0; next != NULL && length != NULL && b < bins; b++) {
		next[b + 1] += next[b];
		packing->longest = length[b] > packing->longest ? length[b] : packing->longest;
	}
	for (size_t i = 0; next != NULL && length != NULL && i < packing->count; i++)
		packing->spans[next[packing->bin_of[i]]++] =
			(struct wlb_packed_span){.span = {.document = (int64_t)i, .tokens = packing->tokens[i]},
		                                 .micro_batch = packing->bin_of[i]};
	int rc = next != NULL && length != NULL ? 0 : -1;
	free(next);
	free(length);
	return rc;
}

int64_t wlb_search_limit(const struct wlb_search *search, double windows)
{
	const struct wlb_search_options *o = &search->options;
	return (int64_t)ceil((double)o->seq_length * fmax(1.0, windows) * o->max_length_ratio);
}

static void clear(struct wlb_search_packing *packing)
{
	free(packing->tokens);
	free(packing->bin_of);
	free(packing->spans);
	*packing = (struct wlb_search_packing){0};
}

static int pack(const struct wlb_search *search, struct wlb_search_packing *packing)
{
	double tokens = packing->windows * (double)search->options.seq_length * packing->bins;
	if (take_documents(search, tokens, packing) < 0)
		return -1;
	packing->fits = wlb_pack_balanced(&search->model, packing->tokens, packing->count, packing->bins,
	                                  wlb_search_limit(search, packing->windows), packing->bin_of, NULL) == 0;
	return packing->fits ? sort_spans(packing, packing->bins) : 0;
}

const struct wlb_search_packing *wlb_search_pack(struct wlb_search *search, double windows, int32_t bins,
                                                 struct wlb_error *error)
{
	for (int i = 0; i < WLB_SEARCH_PACKINGS; i++)
		if (search->packings[i].bins == bins && search->packings[i].windows == windows)
			return &search->packings[i];
	struct wlb_search_packing *packing = &search->packings[search->next_packing];
	search->next_packing = (search->next_packing + 1) % WLB_SEARCH_PACKINGS;
	clear(packing);
	packing->windows = windows;
	packing->bins = bins;
	if (pack(search, packing) == 0)
		return packing;
	clear(packing);
	wlb_fail(error, "out of memory for the documents of %d micro-batches", bins);
	return NULL;
}

void wlb_search_packings_free(struct wlb_search *search)
{
	for (int i = 0; i < WLB_SEARCH_PACKINGS; i++)
		clear(&search->packings[i]);
}

/* The longest micro-batch at a step of the table, as a multiple of the mean micro-batch; the limit where documents do
 * not fit. */
static int measure_ratio(struct wlb_search *search, int step, double *ratio, struct wlb_error *error)
{
	double windows = exp2((double)step / WLB_SEARCH_PACK_STEPS + WLB_SEARCH_PACK_FIRST);
	const struct wlb_search_packing *packing = wlb_search_pack(search, windows, MEASURED_MICRO_BATCHES, error);
	if (packing == NULL)
		return -1;
	int64_t longest = packing->fits ? packing->longest : wlb_search_limit(search, windows);
	*ratio = (double)longest / (windows * (double)search->options.seq_length);
	return 0;
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
		if (*found == 0.0 && measure_ratio(search, step, found, error) < 0)
			return -1;
		ratio = fmax(ratio, *found);
	}
	double mean = fmax(windows, exp2(WLB_SEARCH_PACK_FIRST)) * (double)search->options.seq_length;
	*tokens = (int64_t)ceil(ratio * mean);
	*tokens = *tokens < limit ? *tokens : limit;
	return 0;
}

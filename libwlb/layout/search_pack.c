/* Documents of the samples, packed into micro-batches. */
#include "libwlb/layout/search_pack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Micro-batches that are packed to find how long the longest is; as many windows at most, while two are packed: the
 * longer micro-batches are, the less they differ. And the longest that a packer takes. */
enum { MEASURED_MICRO_BATCHES = 64, MEASURED_WINDOWS = 1024, PACKED_TOKENS_MAX = 1 << 30 };

/* The simulator places the documents again, in all micro-batches: what these have of them has no limit. */
static const int64_t PLACED_TOKENS = (int64_t)1 << 60;

static double wanted_tokens(const struct wlb_search *search, const struct wlb_search_draw *draw)
{
	return draw->windows * draw->fill * (double)search->options.seq_length * draw->bins;
}

static double mean_length(const struct wlb_search *search)
{
	double sum = 0.0;
	for (size_t i = 0; i < search->documents; i++)
		sum += (double)search->tokens[i];
	return sum / (double)search->documents;
}

int32_t wlb_search_draws(const struct wlb_search *search, const struct wlb_search_draw *of)
{
	double documents = wanted_tokens(search, of) / mean_length(search);
	if (search->tokens[0] == search->tokens[search->documents - 1])
		return 1;
	double draws = ceil(WLB_SEARCH_DRAWN_DOCUMENTS / documents);
	return draws < WLB_SEARCH_DRAWS_MAX ? (int32_t)draws : WLB_SEARCH_DRAWS_MAX;
}

/* The root mean square of the lengths in part `part` of `parts` equal ones of the sorted documents. With this length
 * a few parts have the attention of all documents, to which the few longest documents contribute much. */
static int64_t length_of_part(const struct wlb_search *search, size_t part, size_t parts)
{
	size_t first = part * search->documents / parts, end = (part + 1) * search->documents / parts;
	end = end > first ? end : first + 1;
	return llround(sqrt((search->squares[end] - search->squares[first]) / (double)(end - first)));
}

/* Returns the draw with the least tokens. */
static int32_t shortest_draw(const double *tokens, int32_t draws)
{
	int32_t shortest = 0;
	for (int32_t d = 1; d < draws; d++)
		shortest = tokens[d] < tokens[shortest] ? d : shortest;
	return shortest;
}

/* Makes the lengths sum up to the tokens of the share, as those of a step do. A document by itself is not made shorter:
 * it is one where shares are smaller than documents. */
static void scale_lengths(const struct wlb_search *search, double wanted, struct wlb_search_packing *packing)
{
	double sum = 0.0, most = (double)search->options.seq_length;
	for (size_t i = 0; i < packing->count; i++)
		sum += (double)packing->tokens[i];
	double times = wanted / sum;
	if (packing->count == 1 && times < 1.0)
		return;
	for (size_t i = 0; i < packing->count; i++) {
		double length = floor((double)packing->tokens[i] * times + 1e-6);
		packing->tokens[i] = (int64_t)fmax(1.0, fmin(length, most));
	}
}

/* Takes the draw's part of the documents of all draws. Each goes, the longest first, to the draw that has the least
 * tokens, so that a long document is in place of short ones, as in the steps of a fixed number of tokens. */
static int take_documents(const struct wlb_search *search, double wanted, struct wlb_search_packing *packing)
{
	int32_t draws = packing->of.draws;
	double tokens[WLB_SEARCH_DRAWS_MAX] = {0.0};
	size_t of_all = (size_t)fmax((double)draws, round(draws * wanted / mean_length(search)));
	packing->tokens = calloc(of_all, sizeof(*packing->tokens));
	packing->bin_of = calloc(of_all, sizeof(*packing->bin_of));
	packing->spans = calloc(of_all, sizeof(*packing->spans));
	if (packing->tokens == NULL || packing->bin_of == NULL || packing->spans == NULL)
		return -1;
	for (size_t i = 0; i < of_all; i++) {
		int64_t length = length_of_part(search, i, of_all);
		int32_t draw = shortest_draw(tokens, draws);
		tokens[draw] += (double)length;
		if (draw == packing->of.draw)
			packing->tokens[packing->count++] = length;
	}
	scale_lengths(search, wanted, packing);
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
	double whole = o->charge_limit ? ceil(windows - 1e-9) : windows;
	double packed = (double)o->seq_length * o->max_length_ratio, limit = ceil(packed * fmax(1.0, whole));
	if (o->max_tokens == 0)
		return (int64_t)limit;
	/* Micro-batches of equal length, those of ratio 1, have no more than their share; others what the batch has. */
	double most = o->max_length_ratio > 1.0 ? packed * o->global_batch : limit;
	return (int64_t)fmin((double)o->max_tokens, most);
}

static void clear(struct wlb_search_packing *packing)
{
	free(packing->tokens);
	free(packing->bin_of);
	free(packing->spans);
	*packing = (struct wlb_search_packing){0};
}

/* Copies the spans of a step that the packer made. */
static int copy_step(const struct wlb_step *step, struct wlb_search_packing *packing)
{
	struct wlb_packed_span *spans = realloc(packing->spans, (step->count + 1) * sizeof(*spans));
	if (spans == NULL)
		return -1;
	memcpy(spans, step->spans, step->count * sizeof(*spans));
	packing->spans = spans;
	packing->count = step->count;
	for (int32_t b = 0; b < step->micro_batches; b++)
		if (step->loads[b].tokens > packing->longest)
			packing->longest = step->loads[b].tokens;
	return 0;
}

/* Packs with cuts. Tokens beyond the space of all micro-batches, which only rounding makes, are left out. */
static int pack_with_cuts(const struct wlb_search *search, int64_t limit, struct wlb_search_packing *packing)
{
	struct wlb_packer_options options;
	limit = limit < PACKED_TOKENS_MAX ? limit : PACKED_TOKENS_MAX;
	wlb_packer_options_init(&options, limit, packing->of.bins);
	options.strategy = WLB_STRATEGY_FIXED;
	struct wlb_packer *packer = wlb_packer_new(&search->model, &options, NULL);
	struct wlb_span *documents = calloc(packing->count, sizeof(*documents));
	int64_t space = limit * packing->of.bins;
	for (size_t i = 0; documents != NULL && i < packing->count; i++) {
		int64_t tokens = packing->tokens[i] < space ? packing->tokens[i] : space;
		documents[i] = (struct wlb_span){.document = (int64_t)i, .tokens = tokens};
		space -= tokens;
	}
	const struct wlb_step *step = NULL;
	if (packer != NULL && documents != NULL)
		step = wlb_packer_next(packer, documents, packing->count, NULL);
	int rc = step != NULL ? copy_step(step, packing) : -1;
	free(documents);
	wlb_packer_free(packer);
	return rc;
}

/* Documents stay whole where they fit so. Else they are cut, as every packer does: micro-batches that are to be full,
 * such as the windows of other trainers, hold whole documents in rare cases only. */
static int pack(const struct wlb_search *search, struct wlb_search_packing *packing)
{
	const struct wlb_search_draw *of = &packing->of;
	int64_t limit = wlb_search_places(&search->options) ? PLACED_TOKENS : wlb_search_limit(search, of->windows);
	if (take_documents(search, wanted_tokens(search, of), packing) < 0)
		return -1;
	if (wlb_pack_balanced(&search->model, packing->tokens, packing->count, of->bins, limit, packing->bin_of,
	                      NULL) == 0)
		return sort_spans(packing, of->bins);
	return pack_with_cuts(search, limit, packing);
}

static int is_same(const struct wlb_search_draw *a, const struct wlb_search_draw *b)
{
	return a->bins == b->bins && a->windows == b->windows && a->fill == b->fill && a->draw == b->draw &&
	       a->draws == b->draws;
}

const struct wlb_search_packing *wlb_search_pack(struct wlb_search *search, const struct wlb_search_draw *draw,
                                                 struct wlb_error *error)
{
	for (int i = 0; i < WLB_SEARCH_PACKINGS; i++)
		if (is_same(&search->packings[i].of, draw))
			return &search->packings[i];
	struct wlb_search_packing *packing = &search->packings[search->next_packing];
	search->next_packing = (search->next_packing + 1) % WLB_SEARCH_PACKINGS;
	clear(packing);
	packing->of = *draw;
	if (pack(search, packing) == 0)
		return packing;
	clear(packing);
	wlb_fail(error, "out of memory for the documents of %d micro-batches", draw->bins);
	return NULL;
}

void wlb_search_packings_free(struct wlb_search *search)
{
	for (int i = 0; i < WLB_SEARCH_PACKINGS; i++)
		clear(&search->packings[i]);
}

/* The longest micro-batch at a step of the table, as a multiple of the share of a micro-batch. Some batches are full.
 */
static int measure_ratio(struct wlb_search *search, int step, double *ratio, struct wlb_error *error)
{
	double windows = exp2((double)step / WLB_SEARCH_PACK_STEPS + WLB_SEARCH_PACK_FIRST);
	double bins = fmax(2.0, fmin(MEASURED_MICRO_BATCHES, floor(MEASURED_WINDOWS / windows)));
	const struct wlb_search_draw all = {.windows = windows, .fill = 1.0, .bins = (int32_t)bins, .draws = 1};
	const struct wlb_search_packing *packing = wlb_search_pack(search, &all, error);
	if (packing == NULL)
		return -1;
	*ratio = (double)packing->longest / (windows * (double)search->options.seq_length);
	return 0;
}

int wlb_search_longest(struct wlb_search *search, double windows, int64_t *tokens, struct wlb_error *error)
{
	int64_t limit = wlb_search_limit(search, windows);
	*tokens = limit;
	if (search->options.charge_limit)
		return 0;
	double ratio = 0.0, position = (log2(windows) - WLB_SEARCH_PACK_FIRST) * WLB_SEARCH_PACK_STEPS;
	int low = position > 0.0 ? (int)position : 0;
	if (position >= WLB_SEARCH_PACK_TABLE - 1)
		return 0;
	/* The ratio falls as micro-batches grow, but not from each step to the next. */
	for (int step = low; step <= low + (position > low); step++) {
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

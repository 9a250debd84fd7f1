/*
 * Per-document cuts without padding. A document of n tokens on g ranks has 2 g chunks of n / 2g tokens; n mod 2g of
 * them have one more:
 *
 *  - The n mod g tokens that remain when each rank has equally many are assigned to ranks in turn, beginning
 * after the last rank that received one. So ranks differ by at most one token after every document.
 *  - A rank with an odd number of tokens has the longer chunk in front (light, few keys) or at the back (heavy):
 *    whichever makes its attention over all documents so far, and that of the ranks still to be cut, more equal. The
 * longest document is cut first, since shorter ones reduce the difference that it leaves.
 *
 * All arithmetic is in integers.
 */
#include "libwlb/sharding/shard_cut.h"

#include <stdlib.h>

struct document {
	int64_t tokens;
	size_t index;
};

struct cutter {
	struct document *documents; /* longest first */
	int64_t *pairs;             /* of a query and a key, that each rank has so far */
	int64_t next;               /* the rank that receives the next remaining token */
};

/* A document that is being cut from both ends inwards, a rank at a time. */
struct cut {
	int64_t front; /* the tokens [front, back) are left */
	int64_t back;
	int64_t mean;       /* pairs of each rank if all were equal */
	int64_t excess;     /* total pairs of the ranks cut so far above their mean */
	int32_t ranks_left; /* after the current one */
};

int32_t wlb_shard_ranks_of(const struct wlb_shard_batch *batch, size_t document)
{
	if (batch->places == NULL)
		return batch->ranks;
	const struct wlb_place *place = &batch->places[document];
	return place->micro_batch == batch->micro_batch ? place->ranks : 0;
}

int32_t wlb_shard_first_rank(const struct wlb_shard_batch *batch, size_t document)
{
	return batch->places == NULL ? 0 : batch->places[document].first_rank;
}

/* Longest first; the index breaks ties, so that equal inputs are cut equally. */
static int longer_first(const void *a, const void *b)
{
	const struct document *x = a, *y = b;
	if (x->tokens != y->tokens)
		return x->tokens > y->tokens ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* Returns the sum of first + 1 ... first + count: the keys that queries at these positions see. */
static int64_t pairs_of(int64_t first, int64_t count)
{
	return count * first + count * (count + 1) / 2;
}

/* Returns the pairs of a rank whose chunks are the first and the last tokens of those that are left. */
static int64_t chunk_pairs(const struct cut *cut, int64_t front_tokens, int64_t back_tokens)
{
	return pairs_of(cut->front, front_tokens) + pairs_of(cut->back - back_tokens, back_tokens);
}

/* Returns the mean pairs of the ranks once the document is added to those that they have. */
static int64_t mean_pairs(const int64_t *pairs, int32_t ranks, int64_t tokens)
{
	int64_t sum = pairs_of(0, tokens);
	for (int32_t r = 0; r < ranks; r++)
		sum += pairs[r];
	return sum / ranks;
}

/* Returns the greater of two distances from the mean: this rank's, and the distance of each rank still to be cut if
 * these ranks share the remaining pairs equally. */
static int64_t unevenness(const struct cut *cut, int64_t pairs)
{
	int64_t own = llabs(pairs - cut->mean);
	int64_t others = cut->ranks_left > 0 ? llabs(cut->excess + pairs - cut->mean) / cut->ranks_left : 0;
	return own > others ? own : others;
}

/* Returns the number of tokens of a rank's front chunk, of `rank_tokens` in both chunks; `pairs` are its pairs in other
 * documents. */
static int64_t choose_front(const struct cut *cut, int64_t pairs, int64_t rank_tokens)
{
	int64_t fewer = rank_tokens / 2, more = rank_tokens - fewer;
	int64_t light = unevenness(cut, pairs + chunk_pairs(cut, more, fewer));
	int64_t heavy = unevenness(cut, pairs + chunk_pairs(cut, fewer, more));
	return light <= heavy ? more : fewer;
}

/* Cuts a document into two chunks for each rank. `remainder` ranks, from `next` on, have one token more. */
static void cut_document(int64_t *pairs, int32_t ranks, int64_t tokens, int64_t next, uint8_t *longer)
{
	struct cut cut = {.back = tokens, .mean = mean_pairs(pairs, ranks, tokens)};
	int64_t shortest = tokens / (2 * ranks), remainder = tokens % ranks;
	for (int32_t r = 0; r < ranks; r++) {
		cut.ranks_left = ranks - 1 - r;
		int64_t rank_tokens = tokens / ranks + ((r - next + ranks) % ranks < remainder);
		int64_t front_tokens = choose_front(&cut, pairs[r], rank_tokens),
			back_tokens = rank_tokens - front_tokens;
		longer[r] = (uint8_t)(front_tokens - shortest);
		longer[2 * ranks - 1 - r] = (uint8_t)(back_tokens - shortest);
		pairs[r] += chunk_pairs(&cut, front_tokens, back_tokens);
		cut.excess += pairs[r] - cut.mean;
		cut.front += front_tokens;
		cut.back -= back_tokens;
	}
}

static int cutter_init(struct cutter *cutter, const struct wlb_shard_batch *batch, struct wlb_shard_memory *memory)
{
	*cutter = (struct cutter){0};
	cutter->pairs = wlb_buffer_zeroed(&memory->pairs, (size_t)batch->ranks, sizeof(*cutter->pairs));
	cutter->documents = wlb_buffer_zeroed(&memory->documents, batch->count, sizeof(*cutter->documents));
	if (cutter->pairs == NULL || cutter->documents == NULL)
		return -1;
	for (size_t i = 0; i < batch->count; i++)
		cutter->documents[i] = (struct document){.tokens = batch->tokens[i], .index = i};
	qsort(cutter->documents, batch->count, sizeof(*cutter->documents), longer_first);
	return 0;
}

/* Cuts all documents, the longest first, and fills `longer` as wlb_cuts describes it. */
static void cut_all(struct cutter *cutter, const struct wlb_shard_batch *batch, const size_t *first_chunk,
                    uint8_t *longer)
{
	for (size_t d = 0; d < batch->count; d++) {
		size_t i = cutter->documents[d].index;
		int32_t ranks = wlb_shard_ranks_of(batch, i);
		if (ranks == 0)
			continue;
		cut_document(&cutter->pairs[wlb_shard_first_rank(batch, i)], ranks, batch->tokens[i], cutter->next,
		             &longer[first_chunk[i]]);
		/* With places the first ranks have the remainder, as in the loads of wlb_dynamic_cp. */
		if (batch->places == NULL)
			cutter->next = (cutter->next + batch->tokens[i]) % ranks;
	}
}

int wlb_cuts_init(struct wlb_cuts *cuts, const struct wlb_shard_batch *batch, struct wlb_shard_memory *memory)
{
	struct cutter cutter;
	size_t *first_chunk = wlb_buffer_zeroed(&memory->first_chunk, batch->count + 1, sizeof(*first_chunk));
	if (first_chunk == NULL)
		return -1;
	for (size_t i = 0; i < batch->count; i++)
		first_chunk[i + 1] = first_chunk[i] + 2 * (size_t)wlb_shard_ranks_of(batch, i);
	uint8_t *longer = wlb_buffer_zeroed(&memory->longer, first_chunk[batch->count], sizeof(*longer));
	if (longer == NULL || cutter_init(&cutter, batch, memory) < 0)
		return -1;
	cut_all(&cutter, batch, first_chunk, longer);
	*cuts = (struct wlb_cuts){.first_chunk = first_chunk, .longer = longer};
	return 0;
}

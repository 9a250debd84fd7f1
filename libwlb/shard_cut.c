/*
 * Per-document cuts without padding. A document of n tokens on g ranks has 2 g chunks of n / 2g tokens; n mod 2g of
 * them have one more. Two choices are made for each document, the longest first, since the shorter ones
 * correct what it leaves:
 *
 *  - Which ranks get one of the n mod g tokens that are over: those with the fewest so far, of these the ones with
 *    the least attention. So ranks stay within one token of each other after every document.
 *  - Where a rank with an odd number of tokens has its longer chunk: in front (light, few keys) or at the back
 *    (heavy), whichever leaves it, and the ranks further in, nearer to the mean.
 *
 * All of it in whole numbers.
 */
#include "libwlb/shard.h"

#include <stdlib.h>

struct standing {
	int64_t tokens;
	int64_t pairs; /* of a query and a key */
	int32_t rank;
	int32_t more; /* 1: this rank gets a token more of the document at hand */
};

struct document {
	int64_t tokens;
	size_t index;
};

struct cutter {
	struct standing *standings; /* by rank */
	struct standing **order;
	struct document *documents; /* longest first */
};

int32_t wlb_shard_group(const struct wlb_shard_batch *batch, size_t document)
{
	if (batch->places == NULL)
		return batch->ranks;
	const struct wlb_place *place = &batch->places[document];
	return place->micro_batch == batch->micro_batch ? place->ranks : 0;
}

int32_t wlb_shard_first(const struct wlb_shard_batch *batch, size_t document)
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

static int least_first(const void *a, const void *b)
{
	const struct standing *x = *(struct standing *const *)a, *y = *(struct standing *const *)b;
	if (x->tokens != y->tokens)
		return x->tokens < y->tokens ? -1 : 1;
	if (x->pairs != y->pairs)
		return x->pairs < y->pairs ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Chooses the ranks that get a token more; with places the first ones do, as the loads of wlb_spread have it. */
static void give_remainder(struct cutter *cutter, const struct wlb_shard_batch *batch, struct standing *group,
                           int32_t ranks, int64_t remainder)
{
	for (int32_t r = 0; r < ranks; r++) {
		cutter->order[r] = &group[r];
		group[r].more = 0;
	}
	if (batch->places == NULL && remainder > 0)
		qsort(cutter->order, (size_t)ranks, sizeof(*cutter->order), least_first);
	for (int32_t i = 0; i < remainder; i++)
		cutter->order[i]->more = 1;
}

/* Sum of first + 1 ... first + count: the keys that queries at these positions see. */
static int64_t pairs_of(int64_t first, int64_t count)
{
	return count * first + count * (count + 1) / 2;
}

static int64_t mean_pairs(const struct standing *group, int32_t ranks, int64_t tokens)
{
	int64_t sum = pairs_of(0, tokens);
	for (int32_t r = 0; r < ranks; r++)
		sum += group[r].pairs;
	return sum / ranks;
}

/* A document that is being cut from both ends inwards, a rank at a time. */
struct cut {
	int64_t front; /* the tokens [front, back) are left */
	int64_t back;
	int64_t mean;       /* pairs of a rank, were all equal */
	int64_t excess;     /* pairs that the ranks cut so far have above the mean, together */
	int32_t ranks_left; /* after the one at hand */
};

static int64_t pairs_with(const struct cut *cut, int64_t head, int64_t tail)
{
	return pairs_of(cut->front, head) + pairs_of(cut->back - tail, tail);
}

/* How far from the mean a rank comes to stand, or the ranks still to be cut, which share what is left. */
static int64_t unevenness(const struct cut *cut, int64_t pairs)
{
	int64_t own = llabs(pairs - cut->mean);
	int64_t others = cut->ranks_left > 0 ? llabs(cut->excess + pairs - cut->mean) / cut->ranks_left : 0;
	return own > others ? own : others;
}

/* The tokens of a rank's chunk in front, of `each` in both. */
static int64_t choose_head(const struct cut *cut, const struct standing *rank, int64_t each)
{
	int64_t fewer = each / 2, more = each - fewer;
	int64_t light = unevenness(cut, rank->pairs + pairs_with(cut, more, fewer));
	int64_t heavy = unevenness(cut, rank->pairs + pairs_with(cut, fewer, more));
	return light <= heavy ? more : fewer;
}

/* Gives each rank its two chunks. */
static void cut_document(const struct wlb_shard_batch *batch, struct cutter *cutter, struct standing *group,
                         int32_t ranks, int64_t tokens, uint8_t *longer)
{
	give_remainder(cutter, batch, group, ranks, tokens % ranks);
	struct cut cut = {.back = tokens, .mean = mean_pairs(group, ranks, tokens)};
	int64_t shortest = tokens / (2 * ranks);
	for (int32_t r = 0; r < ranks; r++) {
		struct standing *rank = &group[r];
		cut.ranks_left = ranks - 1 - r;
		int64_t each = tokens / ranks + rank->more, head = choose_head(&cut, rank, each), tail = each - head;
		longer[r] = (uint8_t)(head - shortest);
		longer[2 * ranks - 1 - r] = (uint8_t)(tail - shortest);
		rank->tokens += each;
		rank->pairs += pairs_with(&cut, head, tail);
		cut.excess += rank->pairs - cut.mean;
		cut.front += head;
		cut.back -= tail;
	}
}

static int cutter_init(struct cutter *cutter, const struct wlb_shard_batch *batch)
{
	cutter->standings = calloc((size_t)batch->ranks, sizeof(*cutter->standings));
	cutter->order = calloc((size_t)batch->ranks, sizeof(struct standing *));
	cutter->documents = calloc(batch->count + 1, sizeof(*cutter->documents));
	if (cutter->standings == NULL || cutter->order == NULL || cutter->documents == NULL)
		return -1;
	for (int32_t r = 0; r < batch->ranks; r++)
		cutter->standings[r].rank = r;
	for (size_t i = 0; i < batch->count; i++)
		cutter->documents[i] = (struct document){.tokens = batch->tokens[i], .index = i};
	qsort(cutter->documents, batch->count, sizeof(*cutter->documents), longer_first);
	return 0;
}

static void cutter_free(struct cutter *cutter)
{
	free(cutter->standings);
	free(cutter->order);
	free(cutter->documents);
}

void wlb_cuts_free(struct wlb_cuts *cuts)
{
	free(cuts->first_chunk);
	free(cuts->longer);
	*cuts = (struct wlb_cuts){0};
}

int wlb_cuts_init(struct wlb_cuts *cuts, const struct wlb_shard_batch *batch)
{
	struct cutter cutter = {0};
	int rc = -1;
	*cuts = (struct wlb_cuts){.first_chunk = calloc(batch->count + 1, sizeof(*cuts->first_chunk))};
	if (cuts->first_chunk == NULL)
		return -1;
	for (size_t i = 0; i < batch->count; i++)
		cuts->first_chunk[i + 1] = cuts->first_chunk[i] + 2 * (size_t)wlb_shard_group(batch, i);
	cuts->longer = calloc(cuts->first_chunk[batch->count] + 1, sizeof(*cuts->longer));
	if (cuts->longer != NULL)
		rc = cutter_init(&cutter, batch);
	for (size_t d = 0; rc == 0 && d < batch->count; d++) {
		size_t i = cutter.documents[d].index;
		int32_t ranks = wlb_shard_group(batch, i);
		/* One rank alone has nothing to choose, and its documents are no measure for groups. */
		if (ranks > 1)
			cut_document(batch, &cutter, &cutter.standings[wlb_shard_first(batch, i)], ranks,
			             batch->tokens[i], &cuts->longer[cuts->first_chunk[i]]);
		else if (ranks == 1)
			cuts->longer[cuts->first_chunk[i]] = (uint8_t)(batch->tokens[i] % 2);
	}
	cutter_free(&cutter);
	if (rc < 0)
		wlb_cuts_free(cuts);
	return rc;
}

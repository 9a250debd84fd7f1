/* From pieces of documents to the shards of every rank. */
#include "libwlb/shard.h"

#include <stdlib.h>

enum { NONE = -1 };

int wlb_shard_builder_init(struct wlb_shard_builder *b, const struct wlb_shard_batch *batch, size_t pieces)
{
	size_t ranks = (size_t)batch->ranks;
	*b = (struct wlb_shard_builder){.made.ranks = batch->ranks};
	b->pieces = calloc(pieces + 1, sizeof(*b->pieces));
	b->newest = calloc(ranks, sizeof(*b->newest));
	b->made.first_shard = calloc(ranks + 1, sizeof(*b->made.first_shard));
	b->made.first_row = calloc(ranks + 1, sizeof(*b->made.first_row));
	if (b->pieces == NULL || b->newest == NULL || b->made.first_shard == NULL || b->made.first_row == NULL) {
		wlb_shard_builder_free(b);
		return -1;
	}
	for (size_t r = 0; r < ranks; r++)
		b->newest[r] = NONE;
	return 0;
}

void wlb_shard_builder_free(struct wlb_shard_builder *b)
{
	free(b->pieces);
	free(b->newest);
	wlb_shards_free(&b->made);
	*b = (struct wlb_shard_builder){0};
}

void wlb_shard_builder_add(struct wlb_shard_builder *b, struct wlb_cut_piece piece)
{
	if (piece.count == 0)
		return;
	b->made.first_row[piece.rank + 1] += piece.count;
	b->made.tokens += piece.count;
	int64_t *newest = &b->newest[piece.rank];
	if (*newest != NONE) {
		struct wlb_cut_piece *last = &b->pieces[*newest];
		if (last->document == piece.document && last->start + last->count == piece.start) {
			last->count += piece.count;
			return;
		}
	}
	*newest = (int64_t)b->count;
	b->pieces[b->count++] = piece;
	b->made.first_shard[piece.rank + 1]++;
}

/* Where the keys of each document begin. */
static void find_keys(const struct wlb_shard_batch *batch, int32_t *keys)
{
	int32_t tokens = 0;
	for (size_t i = 0; i < batch->count; i++) {
		keys[i] = tokens;
		if (wlb_shard_group(batch, i) > 0)
			tokens += (int32_t)batch->tokens[i];
	}
}

/* Sorts the pieces by rank, each rank's in the order they came. next: one for each rank. */
static void place_shards(struct wlb_shard_builder *b, const int32_t *keys, size_t *next)
{
	struct wlb_shards *made = &b->made;
	for (int32_t r = 0; r < made->ranks; r++) {
		made->first_shard[r + 1] += made->first_shard[r];
		made->first_row[r + 1] += made->first_row[r];
		next[r] = made->first_shard[r];
	}
	for (size_t p = 0; p < b->count; p++) {
		const struct wlb_cut_piece *piece = &b->pieces[p];
		struct wlb_shard *shard = &made->shards[next[piece->rank]];
		int is_first = next[piece->rank]++ == made->first_shard[piece->rank];
		*shard = (struct wlb_shard){
			.document = piece->document,
			.q_start = is_first ? 0 : shard[-1].q_start + shard[-1].q_count,
			.q_count = piece->count,
			.k_start = keys[piece->document],
			.k_count = piece->start + piece->count,
			.q_offset = piece->start,
		};
	}
}

int wlb_shard_builder_finish(struct wlb_shard_builder *b, const struct wlb_shard_batch *batch,
                             enum wlb_sharding sharding, struct wlb_shards *shards)
{
	int32_t *keys = calloc(batch->count + 1, sizeof(*keys));
	size_t *next = calloc((size_t)batch->ranks, sizeof(*next));
	b->made.shards = calloc(b->count + 1, sizeof(*b->made.shards));
	int rc = keys == NULL || next == NULL || b->made.shards == NULL ? -1 : 0;
	if (rc == 0) {
		struct wlb_shards old = *shards;
		find_keys(batch, keys);
		place_shards(b, keys, next);
		b->made.sharding = sharding;
		*shards = b->made;
		b->made = old;
	}
	free(keys);
	free(next);
	return rc;
}

void wlb_shards_free(struct wlb_shards *shards)
{
	if (shards == NULL)
		return;
	free(shards->shards);
	free(shards->first_shard);
	free(shards->first_row);
	*shards = (struct wlb_shards){0};
}

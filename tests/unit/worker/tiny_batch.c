#include "tests/unit/worker/tiny_batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MAX_DOCUMENTS = 8, MAX_TOKENS = 128 };

/* Document order: inputs and targets of all documents, end to end. */
struct joined {
	int64_t lengths[MAX_DOCUMENTS];
	int32_t inputs[MAX_TOKENS];
	int32_t targets[MAX_TOKENS];
	int64_t tokens;
};

static struct joined join(const struct tiny_document *documents, int count)
{
	struct joined all = {0};
	assert_true(count <= MAX_DOCUMENTS);
	for (int d = 0; d < count; d++) {
		all.lengths[d] = documents[d].length;
		assert_true(all.tokens + documents[d].length <= MAX_TOKENS);
		for (int i = 0; i < documents[d].length; i++) {
			all.inputs[all.tokens] = documents[d].tokens[i];
			all.targets[all.tokens++] = documents[d].tokens[i + 1];
		}
	}
	return all;
}

static int64_t rows_of(const struct wlb_shards *shards, int rank)
{
	return shards->first_row[rank + 1] - shards->first_row[rank];
}

static void *upload(struct tiny_batch *b, int place, const void *host, size_t bytes)
{
	struct wlb_error error = {0};
	b->memory[place] = b->device->ops->alloc(b->device, bytes, &error);
	assert_non_null(b->memory[place]);
	b->device->ops->to_device(b->device, NULL, b->memory[place], host, bytes);
	return b->memory[place];
}

static void fill_rows(struct tiny_batch *b, const struct joined *all, const struct wlb_shards *shards, int at)
{
	int32_t token[MAX_TOKENS], ids[MAX_TOKENS] = {0}, targets[MAX_TOKENS], positions[MAX_TOKENS] = {0};
	size_t bytes = (size_t)b->batch.rows * sizeof(int32_t);
	wlb_shards_tokens(shards, at, token);
	wlb_shards_positions(shards, at, positions);
	for (int64_t i = 0; i < b->batch.rows; i++)
		targets[i] = -1;
	for (int64_t i = 0; i < b->batch.own_rows; i++) {
		ids[i] = all->inputs[token[i]];
		targets[i] = all->targets[token[i]];
	}
	b->batch.ids = upload(b, 0, ids, bytes);
	b->batch.targets = upload(b, 1, targets, bytes);
	b->batch.positions = upload(b, 2, positions, bytes);
}

static void fill_segments(struct tiny_batch *b, const struct wlb_shards *shards, int at)
{
	struct wlb_segment list[2 * MAX_DOCUMENTS + 2];
	struct wlb_segments *segments = &b->batch.segments;
	for (size_t i = shards->first_shard[at]; i < shards->first_shard[at + 1]; i++) {
		const struct wlb_shard *s = &shards->shards[i];
		list[segments->count++] =
			(struct wlb_segment){s->q_start, s->q_count, s->k_start, s->k_count, s->q_offset};
		segments->max_q = s->q_count > segments->max_q ? s->q_count : segments->max_q;
		segments->max_k = s->k_count > segments->max_k ? s->k_count : segments->max_k;
	}
	segments->segments = upload(b, 3, list, sizeof(list));
}

/* [tokens] and [cp, rows], each the other's inverse. */
static void fill_maps(struct tiny_batch *b, const struct wlb_shards *shards, int cp)
{
	static int32_t from[MAX_TOKENS], to[4 * MAX_TOKENS], token[MAX_TOKENS];
	int64_t n = b->batch.rows, tokens = b->batch.tokens;
	for (int r = 0; r < cp; r++) {
		wlb_shards_tokens(shards, r, token);
		for (int64_t i = 0; i < n; i++) {
			int own = i < rows_of(shards, r);
			to[r * n + i] = own ? token[i] : -1;
			if (own)
				from[token[i]] = (int32_t)(r * n + i);
		}
	}
	b->batch.from_ranks = upload(b, 4, from, (size_t)tokens * sizeof(int32_t));
	b->batch.to_ranks = upload(b, 5, to, (size_t)(cp * n) * sizeof(int32_t));
}

struct tiny_batch tiny_batch_new(struct wlb_device *device, const struct tiny_document *documents, int count,
                                 enum wlb_sharding sharding, int tp, int cp, int at)
{
	struct joined all = join(documents, count);
	struct wlb_shards shards = {0};
	struct wlb_error error = {0};
	assert_int_equal(wlb_shard(sharding, NULL, all.lengths, (size_t)count, cp, &shards, &error), 0);
	struct tiny_batch b = {.device = device, .batch = {.tokens = all.tokens, .own_rows = rows_of(&shards, at)}};
	for (int r = 0; r < cp; r++)
		if (rows_of(&shards, r) > b.batch.rows)
			b.batch.rows = rows_of(&shards, r);
	b.batch.rows = (b.batch.rows + tp - 1) / tp * tp;
	fill_rows(&b, &all, &shards, at);
	fill_segments(&b, &shards, at);
	b.batch.exchange_count = cp > 1;
	b.batch.exchanges[0] = (struct wlb_exchange){.rows = b.batch.rows, .own_rows = b.batch.rows};
	if (cp > 1)
		fill_maps(&b, &shards, cp);
	wlb_shards_free(&shards);
	return b;
}

void tiny_batch_halve(struct tiny_batch *b, int tp, int64_t least)
{
	struct wlb_segments *segments = &b->batch.segments;
	b->batch.second_half = wlb_second_half(b->batch.rows, tp, least);
	if (b->batch.second_half > 0)
		segments->count = wlb_halve_segments(b->memory[3], segments->count, b->batch.second_half,
		                                     &b->batch.first_segments);
}

void tiny_batch_free(struct tiny_batch *b)
{
	for (int i = 0; i < 6; i++)
		b->device->ops->release(b->device, b->memory[i]);
}

#include "worker/load/rows.h"

#include <stdlib.h>
#include <string.h>

#include "libwlb/capacity.h"

enum { ALIGNED = 16, SEGMENT_WORDS = sizeof(struct wlb_segment) / sizeof(int32_t), NO_TARGET = -1 };

int wlb_rows_init(struct wlb_rows *rows, int32_t micro_batches, struct wlb_error *error)
{
	size_t count = (size_t)micro_batches;
	*rows = (struct wlb_rows){
		.micro_batches = micro_batches,
		.list = calloc(count, sizeof(*rows->list)),
		.arrays = calloc(count, sizeof(*rows->arrays)),
	};
	if (rows->list != NULL && rows->arrays != NULL)
		return 0;
	wlb_rows_free(rows);
	return wlb_fail(error, "out of memory for %zu micro-batches", count);
}

void wlb_rows_free(struct wlb_rows *rows)
{
	wlb_attention_tiles_free(&rows->tiles);
	if (!rows->is_given)
		free(rows->host);
	free(rows->list);
	free(rows->arrays);
	*rows = (struct wlb_rows){0};
}

void wlb_rows_use_block(struct wlb_rows *rows, int32_t *host, size_t capacity)
{
	rows->host = host;
	rows->capacity = capacity;
	rows->is_given = 1;
}

void wlb_rows_clear(struct wlb_rows *rows)
{
	rows->used = 0;
	memset(rows->list, 0, (size_t)rows->micro_batches * sizeof(*rows->list));
}

/* Every array begins on a line of the cache. */
static size_t aligned(size_t count)
{
	return (count + ALIGNED - 1) / ALIGNED * ALIGNED;
}

static size_t take(struct wlb_rows *rows, size_t count)
{
	size_t start = rows->used;
	rows->used += aligned(count);
	return start;
}

/* Reserves `count` more elements, which are 0: the gaps between the arrays are copied to the device with them. */
static int reserve(struct wlb_rows *rows, size_t count, struct wlb_error *error)
{
	if (rows->is_given && rows->used + count > rows->capacity)
		return wlb_fail(error,
		                "a step needs %zu elements of 4 bytes, and %zu are reserved: this is a bug of "
		                "wlb-worker, please report it",
		                rows->used + count, rows->capacity);
	if (wlb_grow((void **)&rows->host, &rows->capacity, rows->used + count, sizeof(*rows->host)) < 0)
		return wlb_fail(error, "out of memory for the rows of a step: %zu of 4 bytes", rows->used + count);
	memset(rows->host + rows->used, 0, count * sizeof(*rows->host));
	return 0;
}

static int lay_out(struct wlb_rows *rows, int32_t number, size_t segments, const struct wlb_share *share,
                   struct wlb_error *error)
{
	size_t n = (size_t)share->rows, from = 0, to = 0;
	if (share->has_exchanges) {
		from = (size_t)share->keys;
		to = (size_t)share->exchanged;
	}
	size_t words = segments * SEGMENT_WORDS;
	size_t needed = aligned(n + 1) + 2 * aligned(n) + aligned(from) + aligned(to) + aligned(words);
	if (reserve(rows, needed, error) < 0)
		return -1;
	struct wlb_row_arrays *arrays = &rows->arrays[number];
	arrays->ids = take(rows, n + 1);
	arrays->targets = take(rows, n);
	arrays->positions = take(rows, n);
	arrays->from_ranks = take(rows, from);
	arrays->to_ranks = take(rows, to);
	arrays->segments = take(rows, words);
	return 0;
}

/* A shard has at least one of the rank's rows, and a document at most two shards on a rank, whose keys begin at the
 * document's first. So n rows have at most n shards and tiles of queries; keys of T tokens are at most T / tile_rows +
 * n tiles, and shards meet at most 2 T / tile_rows + 2 n of them. */
size_t wlb_rows_elements_max(const struct wlb_loader_options *o, int tile_rows)
{
	size_t n = (size_t)wlb_loader_max_rows(o), tokens = (size_t)wlb_loader_max_keys(o);
	size_t ranks = (size_t)wlb_loader_key_ranks(o);
	int has_exchanges = wlb_loader_ranks(o) > 1;
	size_t count = aligned(n + 1) + 2 * aligned(n) + aligned((n + 1) * SEGMENT_WORDS);
	if (has_exchanges)
		count += aligned(tokens) + aligned(n * ranks);
	if (tile_rows > 0) {
		size_t tiles = tokens / (size_t)tile_rows + 1;
		size_t bytes = n * sizeof(struct wlb_query_tile) + (tiles + n) * sizeof(struct wlb_key_tile) +
		               (3 * tiles + 2 * n) * sizeof(int32_t);
		count += bytes / sizeof(int32_t) + 3 * ALIGNED;
	}
	return count * (size_t)wlb_loader_loaded_batches(o);
}

static void fill_segments(struct wlb_micro_batch *batch, int32_t *segments, const struct wlb_shards *shards,
                          const struct wlb_share *share)
{
	const struct wlb_shard *shard = &shards->shards[shards->first_shard[share->rank]];
	for (int s = 0; s < batch->segments.count; s++, shard++) {
		struct wlb_segment segment = {.q_start = shard->q_start,
		                              .q_count = shard->q_count,
		                              .k_start = (int32_t)wlb_share_key(share, shard->k_start),
		                              .k_count = shard->k_count,
		                              .q_offset = shard->q_offset};
		memcpy(segments + (size_t)s * SEGMENT_WORDS, &segment, sizeof(segment));
		if (shard->q_count > batch->segments.max_q)
			batch->segments.max_q = shard->q_count;
		if (shard->k_count > batch->segments.max_k)
			batch->segments.max_k = shard->k_count;
	}
}

/* Copies `bytes` to a new array of the block, which has been reserved, and returns where it begins. */
static size_t append(struct wlb_rows *rows, const void *data, size_t bytes)
{
	size_t start = take(rows, bytes / sizeof(*rows->host));
	if (bytes > 0)
		memcpy(rows->host + start, data, bytes);
	return start;
}

/* Takes memory for the tiles of queries, and puts those of the first half of the rows before the others. */
static void add_query_tiles(struct wlb_rows *rows, int32_t number)
{
	struct wlb_micro_batch *batch = &rows->list[number];
	const struct wlb_attention_tiles *tiles = &rows->tiles;
	size_t words = (size_t)tiles->query_tiles * (sizeof(*tiles->queries) / sizeof(*rows->host));
	rows->arrays[number].query_tiles = take(rows, words);
	struct wlb_query_tile *to = (struct wlb_query_tile *)(rows->host + rows->arrays[number].query_tiles);
	for (int half = 0; half < 2; half++) {
		for (int i = 0; i < tiles->query_tiles; i++)
			if ((tiles->queries[i].segment >= batch->first_segments) == half)
				*to++ = tiles->queries[i];
		if (half == 0)
			batch->first_query_tiles =
				(int)(to - (struct wlb_query_tile *)(rows->host + rows->arrays[number].query_tiles));
	}
}

/* Adds the tiles of the micro-batch's segments. */
static int add_tiles(struct wlb_rows *rows, int32_t number, int tile_rows, struct wlb_error *error)
{
	struct wlb_attention_tiles *tiles = &rows->tiles;
	struct wlb_row_arrays *arrays = &rows->arrays[number];
	struct wlb_segments *segments = &rows->list[number].segments;
	if (wlb_attention_tiles_make(tiles, (const struct wlb_segment *)(rows->host + arrays->segments),
	                             segments->count, tile_rows, error) < 0)
		return -1;
	size_t queries = (size_t)tiles->query_tiles * sizeof(*tiles->queries);
	size_t keys = (size_t)tiles->key_tiles * sizeof(*tiles->keys);
	size_t readers = (size_t)tiles->reader_count * sizeof(*tiles->readers);
	if (reserve(rows, (queries + keys + readers) / sizeof(*rows->host) + 3 * ALIGNED, error) < 0)
		return -1;
	add_query_tiles(rows, number);
	arrays->key_tiles = append(rows, tiles->keys, keys);
	arrays->readers = append(rows, tiles->readers, readers);
	segments->tile_rows = tile_rows;
	segments->query_tile_count = tiles->query_tiles;
	segments->key_tile_count = tiles->key_tiles;
	return 0;
}

int wlb_rows_add(struct wlb_rows *rows, int32_t number, const struct wlb_shards *shards, const struct wlb_share *share,
                 const struct wlb_model *model, int tile_rows, struct wlb_error *error)
{
	size_t segments = shards->first_shard[share->rank + 1] - shards->first_shard[share->rank];
	struct wlb_micro_batch *batch = &rows->list[number];
	*batch = (struct wlb_micro_batch){
		.tokens = share->keys,
		.rows = share->rows,
		.own_rows = share->own_rows,
		.second_half = share->second_half,
		.segments.count = (int)segments,
		.exchange_count = share->has_exchanges ? share->part_count : 0,
		.work = wlb_shards_work(shards, share->rank, model),
	};
	for (int32_t e = 0; e < batch->exchange_count; e++)
		batch->exchanges[e] = share->parts[e].exchange;
	if (lay_out(rows, number, segments + (share->second_half > 0), share, error) < 0)
		return -1;
	const struct wlb_row_arrays *arrays = &rows->arrays[number];
	for (int64_t i = 0; i < batch->rows; i++)
		rows->host[arrays->targets + (size_t)i] = NO_TARGET;
	wlb_shards_positions(shards, share->rank, rows->host + arrays->positions);
	fill_segments(batch, rows->host + arrays->segments, shards, share);
	if (share->second_half > 0)
		batch->segments.count =
			wlb_halve_segments((struct wlb_segment *)(rows->host + arrays->segments), batch->segments.count,
		                           share->second_half, &batch->first_segments);
	if (share->has_exchanges)
		wlb_share_maps(share, shards, rows->host + arrays->from_ranks, rows->host + arrays->to_ranks);
	return tile_rows > 0 ? add_tiles(rows, number, tile_rows, error) : 0;
}

void wlb_rows_set_pointers(struct wlb_rows *rows, const int32_t *block)
{
	for (int32_t m = 0; m < rows->micro_batches; m++) {
		struct wlb_micro_batch *batch = &rows->list[m];
		const struct wlb_row_arrays *arrays = &rows->arrays[m];
		if (batch->tokens == 0)
			continue;
		int has_maps = arrays->to_ranks > arrays->from_ranks;
		batch->ids = block + arrays->ids;
		batch->targets = block + arrays->targets;
		batch->targets_host = rows->host + arrays->targets;
		batch->positions = block + arrays->positions;
		batch->from_ranks = has_maps ? block + arrays->from_ranks : NULL;
		batch->to_ranks = has_maps ? block + arrays->to_ranks : NULL;
		batch->segments.segments = (const struct wlb_segment *)(block + arrays->segments);
		if (batch->segments.tile_rows == 0)
			continue;
		batch->segments.query_tiles = (const struct wlb_query_tile *)(block + arrays->query_tiles);
		batch->segments.key_tiles = (const struct wlb_key_tile *)(block + arrays->key_tiles);
		batch->segments.readers = block + arrays->readers;
	}
}

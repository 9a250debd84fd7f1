/* Makes the blocks of work of attention on a device. */
#include "kernels/attention_tiles.h"

#include <stdlib.h>

#include "libwlb/capacity.h"

static const int32_t ROW_MAX = 1 << 29; /* sums of two are int32 */

/* A tile while the lists are made: what is sorted. */
struct wlb_sized_query_tile {
	struct wlb_query_tile tile; /* first, so that the list is made by a copy of each */
	int32_t keys;               /* that it visits */
};

struct wlb_sized_key_tile {
	struct wlb_key_tile tile;
	int64_t queries; /* of all segments, that visit it */
};

/* Rows of k that segments have in common, or that one segment has alone. */
struct key_range {
	int32_t begin, end;
};

/* One call: its segments, and memory that `tiles` keeps. */
struct work {
	const struct wlb_segment *segments;
	int count, rows;
	struct wlb_sized_query_tile *queries;
	struct wlb_sized_key_tile *keys;
	int *by_start; /* segments with keys, in the order of k_start */
	int with_keys;
};

static int check_segments(const struct wlb_segment *segments, int count, int rows, struct wlb_error *error)
{
	if (rows < 1 || rows > ROW_MAX)
		return wlb_fail(error, "tiles of attention: %d rows; a tile has from 1 to 2^29", rows);
	for (int s = 0; s < count; s++) {
		const struct wlb_segment *segment = &segments[s];
		const int32_t numbers[] = {segment->q_start, segment->q_count, segment->k_start, segment->k_count};
		for (int i = 0; i < 4; i++)
			if (numbers[i] < 0 || numbers[i] > ROW_MAX)
				return wlb_fail(error,
				                "segment %d: %d is no row or number of rows; they are from 0 to 2^29",
				                s, (int)numbers[i]);
		if (segment->q_offset < -ROW_MAX || segment->q_offset > ROW_MAX)
			return wlb_fail(error, "segment %d: q_offset %d; it is from -2^29 to 2^29", s,
			                (int)segment->q_offset);
	}
	return 0;
}

/* -- queries -- */

static int64_t count_query_tiles(const struct work *work)
{
	int64_t tiles = 0;
	for (int s = 0; s < work->count; s++)
		tiles += (work->segments[s].q_count + work->rows - 1) / work->rows;
	return tiles;
}

static int longest_queries_first(const void *one, const void *other)
{
	const struct wlb_sized_query_tile *a = one, *b = other;
	if (a->keys != b->keys)
		return a->keys > b->keys ? -1 : 1;
	if (a->tile.segment != b->tile.segment)
		return a->tile.segment < b->tile.segment ? -1 : 1;
	return a->tile.first < b->tile.first ? -1 : a->tile.first > b->tile.first;
}

static void make_query_tiles(struct wlb_attention_tiles *tiles, const struct work *work)
{
	int made = 0;
	for (int s = 0; s < work->count; s++) {
		const struct wlb_segment *segment = &work->segments[s];
		for (int32_t first = 0; first < segment->q_count; first += work->rows) {
			const int32_t end =
				segment->q_count - first < work->rows ? segment->q_count : first + work->rows;
			work->queries[made++] =
				(struct wlb_sized_query_tile){{s, first}, wlb_visible_keys(segment, end - 1)};
		}
	}
	qsort(work->queries, (size_t)made, sizeof(*work->queries), longest_queries_first);
	for (int i = 0; i < made; i++)
		tiles->queries[i] = work->queries[i].tile;
	tiles->query_tiles = made;
}

/* -- keys -- */

/* Returns how many queries of the segment see a row of k at or after `row`, which is in or before its range. */
static int32_t queries_that_see(const struct wlb_segment *segment, int32_t row)
{
	const int64_t key = row > segment->k_start ? row - segment->k_start : 0;
	const int64_t first = key - segment->q_offset; /* the first query that sees it */
	if (first >= segment->q_count)
		return 0;
	return first > 0 ? (int32_t)(segment->q_count - first) : segment->q_count;
}

/* The segments whose ranges overlap, in a row, as qsort needs them: by start, then by number. */
static int by_start(const void *one, const void *other, void *context)
{
	const struct wlb_segment *segments = context;
	const int a = *(const int *)one, b = *(const int *)other;
	if (segments[a].k_start != segments[b].k_start)
		return segments[a].k_start < segments[b].k_start ? -1 : 1;
	return a < b ? -1 : a > b;
}

static int ascending(const void *one, const void *other)
{
	const int32_t a = *(const int32_t *)one, b = *(const int32_t *)other;
	return a < b ? -1 : a > b;
}

/* The tile of the rows of `range`: its readers are among the `count` segments at by_start[0 ..). */
static void make_key_tile(struct wlb_attention_tiles *tiles, const struct work *work, struct key_range range,
                          const int *by_start, int count)
{
	struct wlb_sized_key_tile made = {{range.begin, range.end - range.begin, tiles->reader_count, 0}, 0};
	for (int i = 0; i < count; i++) {
		const struct wlb_segment *segment = &work->segments[by_start[i]];
		if (segment->k_start >= range.end)
			break;
		const int32_t queries = queries_that_see(segment, range.begin);
		if (queries == 0 || segment->k_start + segment->k_count <= range.begin)
			continue;
		tiles->readers[tiles->reader_count++] = by_start[i];
		made.tile.readers++;
		made.queries += queries;
	}
	qsort(&tiles->readers[made.tile.first_reader], (size_t)made.tile.readers, sizeof(int32_t), ascending);
	work->keys[tiles->key_tiles++] = made;
}

static int longest_keys_first(const void *one, const void *other)
{
	const struct wlb_sized_key_tile *a = one, *b = other;
	if (a->queries != b->queries)
		return a->queries > b->queries ? -1 : 1;
	return a->tile.k_start < b->tile.k_start ? -1 : a->tile.k_start > b->tile.k_start;
}

/* Ranges that overlap are cut together, from the first of their rows. Ranges that only touch, as those of two whole
 * documents, are cut each by itself, so that a tile of short documents does not become long by the next one. */
static void make_key_tiles(struct wlb_attention_tiles *tiles, const struct work *work)
{
	tiles->key_tiles = tiles->reader_count = 0;
	for (int i = 0, next; i < work->with_keys; i = next) {
		const struct wlb_segment *segment = &work->segments[work->by_start[i]];
		struct key_range range = {segment->k_start, segment->k_start + segment->k_count};
		for (next = i + 1; next < work->with_keys; next++) {
			segment = &work->segments[work->by_start[next]];
			if (segment->k_start >= range.end)
				break;
			if (segment->k_start + segment->k_count > range.end)
				range.end = segment->k_start + segment->k_count;
		}
		for (int32_t row = range.begin; row < range.end; row += work->rows) {
			const int32_t end = range.end - row < work->rows ? range.end : row + work->rows;
			make_key_tile(tiles, work, (struct key_range){row, end}, &work->by_start[i], next - i);
		}
	}
	qsort(work->keys, (size_t)tiles->key_tiles, sizeof(*work->keys), longest_keys_first);
	for (int i = 0; i < tiles->key_tiles; i++)
		tiles->keys[i] = work->keys[i].tile;
}

/* -- both -- */

/* Reserves lists and work. A range of n rows meets at most ceil(n / rows) + 1 tiles, and a tile of overlapping ranges
 * is met by at least one of them. */
static int reserve(struct wlb_attention_tiles *tiles, struct work *work)
{
	const int64_t queries = count_query_tiles(work);
	int64_t readers = 0;
	for (int s = 0; s < work->count; s++)
		readers += (work->segments[s].k_count + work->rows - 1) / work->rows + 1;
	if (queries > ROW_MAX || readers > ROW_MAX ||
	    wlb_grow((void **)&tiles->queries, &tiles->query_capacity, (size_t)queries + 1, sizeof(*tiles->queries)) ||
	    wlb_grow((void **)&tiles->keys, &tiles->key_capacity, (size_t)readers + 1, sizeof(*tiles->keys)) ||
	    wlb_grow((void **)&tiles->readers, &tiles->reader_capacity, (size_t)readers + 1, sizeof(*tiles->readers)) ||
	    wlb_grow((void **)&tiles->sized_queries, &tiles->sized_query_capacity, (size_t)queries + 1,
	             sizeof(*tiles->sized_queries)) ||
	    wlb_grow((void **)&tiles->sized_keys, &tiles->sized_key_capacity, (size_t)readers + 1,
	             sizeof(*tiles->sized_keys)) ||
	    wlb_grow((void **)&tiles->by_start, &tiles->by_start_capacity, (size_t)work->count + 1,
	             sizeof(*tiles->by_start)))
		return -1;
	work->queries = tiles->sized_queries;
	work->keys = tiles->sized_keys;
	work->by_start = tiles->by_start;
	return 0;
}

int wlb_attention_tiles_make(struct wlb_attention_tiles *tiles, const struct wlb_segment *segments, int count, int rows,
                             struct wlb_error *error)
{
	tiles->query_tiles = tiles->key_tiles = tiles->reader_count = 0;
	if (check_segments(segments, count, rows, error) != 0)
		return -1;
	struct work work = {.segments = segments, .count = count, .rows = rows};
	if (reserve(tiles, &work) < 0)
		return wlb_fail(error, "tiles of attention of %d segments: out of memory", count);
	for (int s = 0; s < count; s++)
		if (segments[s].k_count > 0)
			work.by_start[work.with_keys++] = s;
	qsort_r(work.by_start, (size_t)work.with_keys, sizeof(*work.by_start), by_start, (void *)segments);
	make_query_tiles(tiles, &work);
	make_key_tiles(tiles, &work);
	return 0;
}

void wlb_attention_tiles_free(struct wlb_attention_tiles *tiles)
{
	free(tiles->queries);
	free(tiles->keys);
	free(tiles->readers);
	free(tiles->sized_queries);
	free(tiles->sized_keys);
	free(tiles->by_start);
	*tiles = (struct wlb_attention_tiles){0};
}

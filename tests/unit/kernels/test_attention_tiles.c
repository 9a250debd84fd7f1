/* The tiles of attention cover every query, every key and every pair of them exactly once, and the longest are first.
 */
#include "tests/unit/kernels/support.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/attention_tiles.h"

enum { MOST_SEGMENTS = 12, MOST_LENGTH = 400, MOST_KEYS = MOST_SEGMENTS * 2 * MOST_LENGTH };

/* How often each (query, key) of a segment is computed. */
struct pairs {
	unsigned char *of[MOST_SEGMENTS];
};

static struct pairs pairs_new(const struct wlb_segment *segments, int count)
{
	struct pairs pairs;
	for (int s = 0; s < count; s++)
		pairs.of[s] = calloc((size_t)segments[s].q_count * (size_t)segments[s].k_count + 1, 1);
	return pairs;
}

/* Every visible pair once, no other. */
static void check_pairs(const struct pairs *pairs, const struct wlb_segment *segments, int count)
{
	for (int s = 0; s < count; s++) {
		const struct wlb_segment *segment = &segments[s];
		for (int i = 0; i < segment->q_count; i++)
			for (int j = 0; j < segment->k_count; j++)
				assert_int_equal(pairs->of[s][i * segment->k_count + j], j <= segment->q_offset + i);
		free(pairs->of[s]);
	}
}

static int least(int a, int b)
{
	return a < b ? a : b;
}

/* What the forward pass and d_q compute with the list: a tile visits the keys that its last query sees. */
static void check_queries(const struct wlb_attention_tiles *tiles, const struct wlb_segment *segments, int count,
                          int rows)
{
	struct pairs pairs = pairs_new(segments, count);
	int64_t queries = 0;
	int before = INT32_MAX;
	for (int t = 0; t < tiles->query_tiles; t++) {
		const struct wlb_query_tile tile = tiles->queries[t];
		assert_in_range(tile.segment, 0, count - 1);
		const struct wlb_segment *segment = &segments[tile.segment];
		assert_in_range(tile.first, 0, segment->q_count - 1);
		const int end = least(segment->q_count, tile.first + rows);
		const int visited = wlb_visible_keys(segment, end - 1);
		assert_true(visited <= before);
		before = visited;
		queries += end - tile.first;
		for (int i = tile.first; i < end; i++)
			for (int j = 0; j < wlb_visible_keys(segment, i); j++)
				pairs.of[tile.segment][i * segment->k_count + j]++;
	}
	for (int s = 0; s < count; s++)
		queries -= segments[s].q_count;
	assert_int_equal(queries, 0);
	check_pairs(&pairs, segments, count);
}

/* Adds the pairs of one reader of a key tile; returns how many queries take part. */
static int add_reader(struct pairs *pairs, const struct wlb_key_tile *tile, const struct wlb_segment *segment, int s)
{
	int queries = 0;
	for (int i = 0; i < segment->q_count; i++) {
		int sees = 0;
		for (int row = tile->k_start; row < tile->k_start + tile->k_count; row++) {
			const int j = row - segment->k_start;
			if (j < 0 || j >= wlb_visible_keys(segment, i))
				continue;
			pairs->of[s][i * segment->k_count + j]++;
			sees = 1;
		}
		queries += sees;
	}
	return queries;
}

/* What d_k and d_v compute with the list. */
static void check_keys(const struct wlb_attention_tiles *tiles, const struct wlb_segment *segments, int count, int rows)
{
	static unsigned char covered[MOST_KEYS];
	memset(covered, 0, sizeof(covered));
	struct pairs pairs = pairs_new(segments, count);
	int before = INT32_MAX;
	for (int t = 0; t < tiles->key_tiles; t++) {
		const struct wlb_key_tile *tile = &tiles->keys[t];
		assert_in_range(tile->k_count, 1, rows);
		for (int row = tile->k_start; row < tile->k_start + tile->k_count; row++)
			covered[row]++;
		int queries = 0;
		for (int r = 0; r < tile->readers; r++) {
			const int s = tiles->readers[tile->first_reader + r];
			assert_true(r == 0 || tiles->readers[tile->first_reader + r - 1] < s);
			const int seen = add_reader(&pairs, tile, &segments[s], s);
			assert_true(seen > 0);
			queries += seen;
		}
		assert_true(queries <= before);
		before = queries;
	}
	check_pairs(&pairs, segments, count);
	for (int row = 0; row < MOST_KEYS; row++) {
		int wanted = 0;
		for (int s = 0; s < count; s++)
			wanted |= row >= segments[s].k_start && row < segments[s].k_start + segments[s].k_count;
		assert_int_equal(covered[row], wanted);
	}
}

static void check(struct wlb_attention_tiles *tiles, const struct wlb_segment *segments, int count, int rows)
{
	struct wlb_error error;
	assert_int_equal(wlb_attention_tiles_make(tiles, segments, count, rows, &error), 0);
	check_queries(tiles, segments, count, rows);
	check_keys(tiles, segments, count, rows);
}

static void test_documents(void **state)
{
	(void)state;
	const struct wlb_segment s[] = {
		{0, 1, 0, 1, 0}, {1, 129, 1, 129, 0}, {130, 128, 130, 128, 0}, {258, 300, 258, 300, 0}};
	struct wlb_attention_tiles tiles = {0};
	check(&tiles, s, 4, 128);
	assert_int_equal(tiles.query_tiles, 1 + 2 + 1 + 3);
	assert_int_equal(tiles.key_tiles, 1 + 2 + 1 + 3);
	assert_int_equal(tiles.queries[0].segment, 3);
	assert_int_equal(tiles.queries[0].first, 256);
	assert_int_equal(tiles.keys[0].k_start, 258);
	check(&tiles, s, 0, 128);
	assert_int_equal(tiles.query_tiles + tiles.key_tiles, 0);
	wlb_attention_tiles_free(&tiles);
}

/* The chunks 0 and 3 of four of a document of 400: both see keys from its start. */
static void test_context_parallel(void **state)
{
	(void)state;
	const struct wlb_segment s[] = {{0, 100, 0, 100, 0}, {100, 100, 0, 400, 300}};
	struct wlb_attention_tiles tiles = {0};
	check(&tiles, s, 2, 128);
	assert_int_equal(tiles.query_tiles, 2);
	assert_int_equal(tiles.key_tiles, 4);
	assert_int_equal(tiles.keys[0].readers, 2);
	assert_int_equal(tiles.keys[1].readers, 1);
	wlb_attention_tiles_free(&tiles);
}

/* Queries without keys, keys without queries, keys that no query reaches, queries before the first key. */
static void test_nothing_to_see(void **state)
{
	(void)state;
	const struct wlb_segment s[] = {{0, 9, 0, 0, 0}, {9, 0, 0, 7, 0}, {9, 5, 7, 300, 2}, {14, 6, 307, 4, -3}};
	struct wlb_attention_tiles tiles = {0};
	check(&tiles, s, 4, 64);
	const struct wlb_segment end_at_a_tile[] = {{0, 10, 0, 64, 100}, {10, 10, 0, 128, 100}};
	check(&tiles, end_at_a_tile, 2, 64);
	wlb_attention_tiles_free(&tiles);
}

/* Any segments: documents, chunks that share keys, ranges that overlap anyhow. */
static void test_random(void **state)
{
	(void)state;
	struct wlb_attention_tiles tiles = {0};
	uint32_t random = 1;
	for (int trial = 0; trial < 300; trial++) {
		struct wlb_segment segments[MOST_SEGMENTS];
		int32_t numbers[4 * MOST_SEGMENTS];
		for (int i = 0; i < 4 * MOST_SEGMENTS; i++)
			numbers[i] = (int32_t)((random = random * 1664525 + 1013904223) >> 8);
		const int count = numbers[0] % (MOST_SEGMENTS + 1), kind = trial % 3;
		int row = 0, key = 0;
		for (int s = 0; s < count; s++) {
			const int32_t *n = &numbers[4 * s], most = n[0] % 7 == 0 ? MOST_LENGTH : 40;
			const int32_t q_count = n[1] % most, k_count = kind == 0 ? q_count : n[2] % most;
			const int32_t start = kind == 2 ? n[3] % MOST_LENGTH : key;
			const int32_t offset = kind == 0 ? 0 : kind == 1 ? k_count - q_count : n[3] % 80 - 40;
			segments[s] = (struct wlb_segment){row, q_count, start, k_count, offset};
			row += q_count;
			key += kind == 1 && n[3] % 2 == 0 ? 0 : k_count;
		}
		check(&tiles, segments, count, 32 << trial % 3);
	}
	wlb_attention_tiles_free(&tiles);
}

static void expect_refused(struct wlb_segment segment, int rows, const char *part)
{
	struct wlb_attention_tiles tiles = {0};
	struct wlb_error error = {""};
	assert_int_equal(wlb_attention_tiles_make(&tiles, &segment, 1, rows, &error), -1);
	assert_non_null(strstr(error.message, part));
	assert_int_equal(tiles.query_tiles, 0);
	wlb_attention_tiles_free(&tiles);
}

static void test_refused(void **state)
{
	(void)state;
	expect_refused((struct wlb_segment){0, -1, 0, 1, 0}, 64, "segment 0: -1");
	expect_refused((struct wlb_segment){0, 1, 0, INT32_MAX, 0}, 64, "segment 0: 2147483647");
	expect_refused((struct wlb_segment){0, 1, 0, 1, INT32_MIN}, 64, "q_offset -2147483648");
	expect_refused((struct wlb_segment){0, 1, 0, 1, 0}, 0, "0 rows");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_documents), cmocka_unit_test(test_context_parallel),
	                                   cmocka_unit_test(test_nothing_to_see), cmocka_unit_test(test_random),
	                                   cmocka_unit_test(test_refused)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

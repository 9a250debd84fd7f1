/* Tests adaptive sharding, the shards of dynamic context parallelism, and the inputs that are refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/bench/pack/corpus.h"

enum { WINDOW = 131072 };

static struct wlb_kernel_time gpu(void)
{
	struct wlb_kernel_time time;
	wlb_kernel_time_init(&time, &corpus_model, 1, 400e12, 600e12);
	return time;
}

static double slowest_s(const struct wlb_shards *shards, const struct wlb_kernel_time *time)
{
	double slowest = 0.0;
	for (int32_t r = 0; r < shards->ranks; r++)
		slowest = fmax(slowest, wlb_shards_seconds(shards, r, time));
	return slowest;
}

static void adaptive_takes_what_the_slowest_rank_does_sooner(void **state)
{
	(void)state;
	struct wlb_kernel_time time = gpu();
	struct wlb_shards sequence = {0}, document = {0}, adaptive = {0};
	uint64_t random = 1;
	int chosen[WLB_SHARDING_ADAPTIVE] = {0};
	for (int trial = 0; trial < 300; trial++) {
		int64_t tokens[40];
		size_t count = 1 + corpus_random(&random) % 40;
		int32_t ranks = 2 << corpus_random(&random) % 4;
		int64_t most = 200 << corpus_random(&random) % 10;
		for (size_t i = 0; i < count; i++)
			tokens[i] = (int64_t)(corpus_random(&random) % (uint64_t)most);
		assert_int_equal(wlb_shard(WLB_SHARDING_SEQUENCE, NULL, tokens, count, ranks, &sequence, NULL), 0);
		assert_int_equal(wlb_shard(WLB_SHARDING_DOCUMENT, NULL, tokens, count, ranks, &document, NULL), 0);
		assert_int_equal(wlb_shard(WLB_SHARDING_ADAPTIVE, &time, tokens, count, ranks, &adaptive, NULL), 0);
		assert_true(slowest_s(&adaptive, &time) ==
		            fmin(slowest_s(&sequence, &time), slowest_s(&document, &time)));
		chosen[adaptive.sharding]++;
	}
	assert_true(chosen[WLB_SHARDING_SEQUENCE] > 50);
	assert_true(chosen[WLB_SHARDING_DOCUMENT] > 50);
	wlb_shards_free(&sequence);
	wlb_shards_free(&document);
	wlb_shards_free(&adaptive);
}

/* Tiles make the difference: short documents would each fill 2 x ranks tiles in part. */
static void adaptive_keeps_short_documents_together_and_splits_long_ones(void **state)
{
	(void)state;
	struct wlb_kernel_time time = gpu();
	struct wlb_shards shards = {0};
	int64_t tokens[512];
	for (int i = 0; i < 512; i++)
		tokens[i] = WINDOW / 512;
	assert_int_equal(wlb_shard(WLB_SHARDING_ADAPTIVE, &time, tokens, 512, 8, &shards, NULL), 0);
	assert_int_equal(shards.sharding, WLB_SHARDING_SEQUENCE);
	tokens[0] = 100000;
	tokens[1] = 31072;
	assert_int_equal(wlb_shard(WLB_SHARDING_ADAPTIVE, &time, tokens, 2, 8, &shards, NULL), 0);
	assert_int_equal(shards.sharding, WLB_SHARDING_DOCUMENT);
	wlb_shards_free(&shards);
}

/* One micro-batch of a spread: its documents only, each on its ranks only, as many tokens as its loads say. */
static void check_spread_shards(const struct wlb_shards *shards, const int64_t *tokens, const struct wlb_place *places,
                                size_t count, int32_t micro_batch, const struct wlb_load *loads)
{
	int64_t seen[100] = {0}, first[100] = {0}, sum = 0;
	for (size_t i = 0; i < count; i++) {
		first[i] = sum;
		sum += places[i].micro_batch == micro_batch ? tokens[i] : 0;
	}
	assert_int_equal(shards->tokens, sum);
	for (int32_t r = 0; r < shards->ranks; r++) {
		assert_int_equal(shards->first_row[r + 1] - shards->first_row[r], loads[r].tokens);
		for (size_t s = shards->first_shard[r]; s < shards->first_shard[r + 1]; s++) {
			const struct wlb_shard *shard = &shards->shards[s];
			const struct wlb_place *place = &places[shard->document];
			assert_int_equal(place->micro_batch, micro_batch);
			assert_in_range(r, place->first_rank, place->first_rank + place->ranks - 1);
			assert_int_equal(shard->k_start, first[shard->document]);
			seen[shard->document] += shard->q_count;
		}
	}
	for (size_t i = 0; i < count; i++)
		assert_int_equal(seen[i], places[i].micro_batch == micro_batch ? tokens[i] : 0);
	int32_t *rows = calloc((size_t)sum + 1, sizeof(*rows));
	assert_non_null(rows);
	for (int64_t t = 0; t < sum; t++)
		rows[t] = -1;
	wlb_shards_rows(shards, rows);
	for (int64_t t = 0; t < sum; t++)
		assert_in_range(rows[t], 0, sum - 1);
	free(rows);
}

static void shards_what_dynamic_context_parallelism_places(void **state)
{
	(void)state;
	struct wlb_shards shards = {0};
	uint64_t random = 3;
	int split = 0;
	for (int trial = 0; trial < 300; trial++) {
		int32_t ranks = 1 + (int32_t)(corpus_random(&random) % 24);
		int32_t micro_batches = 1 + (int32_t)(corpus_random(&random) % 3);
		size_t count = corpus_random(&random) % 100;
		int64_t tokens[100];
		struct wlb_place places[100];
		struct wlb_load loads[24 * 3];
		for (size_t i = 0; i < count; i++)
			tokens[i] = (int64_t)(corpus_random(&random) % (corpus_random(&random) % 5 ? 200 : 20000));
		assert_int_equal(wlb_dynamic_cp(&corpus_model, tokens, count, ranks, micro_batches, WINDOW * 8, places,
		                                loads, NULL),
		                 0);
		for (int32_t m = 0; m < micro_batches; m++) {
			assert_int_equal(wlb_shard_places(tokens, places, count, ranks, m, &shards, NULL), 0);
			check_spread_shards(&shards, tokens, places, count, m, &loads[m * ranks]);
		}
		for (size_t i = 0; i < count; i++)
			split += places[i].ranks > 1;
	}
	assert_true(split > 1000);
	wlb_shards_free(&shards);
}

/* Every rank of a group has the same attention, but for what whole tokens leave. */
static void splits_a_placed_document_equally(void **state)
{
	(void)state;
	struct wlb_shards shards = {0};
	static const int64_t tokens[] = {8000, 1000, 4003};
	static const struct wlb_place places[] = {{0, 0, 8}, {1, 0, 8}, {0, 4, 4}};
	assert_int_equal(wlb_shard_places(tokens, places, 3, 8, 0, &shards, NULL), 0);
	for (int32_t r = 0; r < 8; r++) {
		int64_t expected = 8000 * 8001 / 2 / 8 + (r >= 4 ? (int64_t)4003 * 4004 / 2 / 4 : 0);
		assert_true(llabs(wlb_shards_pairs(&shards, r) - expected) <= 4003);
		assert_int_equal(shards.first_row[r + 1] - shards.first_row[r],
		                 1000 + (r >= 4 ? 1000 : 0) + (r >= 4 && r < 7));
	}
	wlb_shards_free(&shards);
}

/* Only the micro-batch that is sharded must have at most 2^30 tokens. */
static void shards_one_of_many_long_micro_batches(void **state)
{
	(void)state;
	static const int64_t tokens[] = {600000000, 600000000, INT64_MAX, 600000000};
	static const struct wlb_place places[] = {{0, 0, 1}, {1, 1, 2}, {2, 0, 4}, {3, 0, 1}},
				      same[] = {{0, 0, 1}, {0, 1, 2}};
	struct wlb_shards shards = {0};
	struct wlb_error error;
	assert_int_equal(wlb_shard_places(tokens, places, 4, 4, 1, &shards, NULL), 0);
	assert_int_equal(shards.tokens, 600000000);
	assert_int_equal(shards.first_row[2] - shards.first_row[1], 300000000);
	assert_int_equal(wlb_shard_places(tokens, same, 2, 4, 0, &shards, &error), -1);
	assert_string_equal(error.message, "document 1 brings the micro-batch above 2^30 tokens: split it");
	wlb_shards_free(&shards);
}

static void refuses(const char *message, enum wlb_sharding sharding, const struct wlb_kernel_time *time,
                    const int64_t *tokens, size_t count, int32_t ranks)
{
	struct wlb_shards shards = {0};
	struct wlb_error error;
	assert_int_equal(wlb_shard(sharding, time, tokens, count, ranks, &shards, &error), -1);
	assert_string_equal(error.message, message);
	assert_null(shards.shards);
}

static void refuses_what_cannot_be(void **state)
{
	(void)state;
	static const int64_t tokens[] = {7, -3, (int64_t)1 << 30, INT64_MAX};
	static const struct wlb_place places[] = {{0, 6, 4}};
	struct wlb_kernel_time time = gpu();
	struct wlb_shards shards = {0};
	struct wlb_error error;
	time.q_tile = 0;
	refuses("0 ranks share a micro-batch: it must be 1 to 65536", WLB_SHARDING_DOCUMENT, NULL, tokens, 1, 0);
	refuses("document 1 has -3 tokens: it must not be negative", WLB_SHARDING_SEQUENCE, NULL, tokens, 2, 4);
	refuses("document 1 brings the micro-batch above 2^30 tokens: split it", WLB_SHARDING_DOCUMENT, NULL,
	        (const int64_t[]){1, tokens[2]}, 2, 4);
	refuses("document 0 brings the micro-batch above 2^30 tokens: split it", WLB_SHARDING_DOCUMENT, NULL,
	        &tokens[3], 1, 4);
	refuses("adaptive sharding needs the times of kernels: none are given", WLB_SHARDING_ADAPTIVE, NULL, tokens, 1,
	        4);
	refuses("sharding 7 is not known: use one of enum wlb_sharding", (enum wlb_sharding)7, NULL, tokens, 1, 4);
	refuses("sharding -1 is not known: use one of enum wlb_sharding", (enum wlb_sharding) - 1, NULL, tokens, 1, 4);
	refuses("q_tile is 0: it must be between 1 and 65536 tokens", WLB_SHARDING_ADAPTIVE, &time, tokens, 1, 4);
	assert_int_equal(wlb_shard_places(tokens, places, 1, 8, 0, &shards, &error), -1);
	assert_string_equal(error.message, "document 0 is on 4 ranks from rank 6 on: they must lie in 0 to 7");
}

static void an_error_leaves_the_shards_that_were_there(void **state)
{
	(void)state;
	static const int64_t tokens[] = {7, -3};
	struct wlb_shards shards = {0};
	assert_int_equal(wlb_shard(WLB_SHARDING_DOCUMENT, NULL, tokens, 1, 2, &shards, NULL), 0);
	assert_int_equal(wlb_shard(WLB_SHARDING_DOCUMENT, NULL, tokens, 2, 2, &shards, NULL), -1);
	assert_int_equal(shards.tokens, 7);
	wlb_shards_free(&shards);
	wlb_shards_free(&shards);
	wlb_shards_free(NULL);
}

static void names_can_be_read_back(void **state)
{
	(void)state;
	struct wlb_error error;
	enum wlb_sharding parsed;
	for (int s = WLB_SHARDING_SEQUENCE; s <= WLB_SHARDING_ADAPTIVE; s++) {
		assert_int_equal(wlb_sharding_parse(wlb_sharding_name((enum wlb_sharding)s), &parsed, NULL), 0);
		assert_int_equal(parsed, s);
	}
	assert_string_equal(wlb_sharding_name((enum wlb_sharding)50), "unknown");
	assert_string_equal(wlb_sharding_name((enum wlb_sharding) - 1), "unknown");
	assert_int_equal(wlb_sharding_parse("ring", &parsed, &error), -1);
	assert_string_equal(error.message, "sharding \"ring\" is not known: per-sequence, per-document or adaptive");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(adaptive_takes_what_the_slowest_rank_does_sooner),
		cmocka_unit_test(adaptive_keeps_short_documents_together_and_splits_long_ones),
		cmocka_unit_test(shards_what_dynamic_context_parallelism_places),
		cmocka_unit_test(splits_a_placed_document_equally),
		cmocka_unit_test(shards_one_of_many_long_micro_batches),
		cmocka_unit_test(refuses_what_cannot_be),
		cmocka_unit_test(an_error_leaves_the_shards_that_were_there),
		cmocka_unit_test(names_can_be_read_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

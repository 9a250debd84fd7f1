/* Sharding of a micro-batch against brute force: what any input must give, and how equal the ranks get. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/bench/pack/corpus.h"

enum { MOST_DOCUMENTS = 400, MOST_RANKS = 64 };

struct micro_batch {
	int64_t tokens[MOST_DOCUMENTS];
	size_t count;
	int64_t sum;
	int64_t longest;
};

static void add_document(struct micro_batch *batch, int64_t tokens)
{
	assert_true(batch->count < MOST_DOCUMENTS);
	batch->tokens[batch->count++] = tokens;
	batch->sum += tokens;
	batch->longest = tokens > batch->longest ? tokens : batch->longest;
}

/* Lengths of 0, 1, about the number of chunks, short and long, none shorter than `least`. */
static void fill_at_random(struct micro_batch *batch, uint64_t *random, int32_t ranks, int64_t least)
{
	size_t count = corpus_random(random) % 12;
	memset(batch, 0, sizeof(*batch));
	for (size_t i = 0; i < count; i++) {
		const int64_t choices[] = {0,
		                           1,
		                           (int64_t)(corpus_random(random) % (2 * (uint64_t)ranks)),
		                           2 * ranks,
		                           2 * ranks + 1,
		                           (int64_t)(corpus_random(random) % 300),
		                           (int64_t)(corpus_random(random) % 5000)};
		int64_t tokens = choices[corpus_random(random) % 7];
		add_document(batch, tokens < least ? least + tokens : tokens);
	}
}

static int64_t rows_of(const struct wlb_shards *shards, int32_t rank)
{
	return shards->first_row[rank + 1] - shards->first_row[rank];
}

/* Every row of a rank: which token it is, where in its document, and that it sees that document up to itself. */
static int64_t check_rank(const struct wlb_shards *shards, int32_t rank, const struct micro_batch *batch,
                          const int32_t *document_of, const int32_t *position_of)
{
	size_t n = shards->first_shard[rank + 1] - shards->first_shard[rank];
	const struct wlb_shard *shard = &shards->shards[shards->first_shard[rank]];
	int64_t rows = rows_of(shards, rank), row = 0, pairs = 0;
	int32_t *tokens = calloc((size_t)rows + 1, sizeof(*tokens));
	int32_t *positions = calloc((size_t)rows + 1, sizeof(*positions));
	int32_t *cu_q = calloc(n + 1, sizeof(*cu_q)), *cu_k = calloc(n + 1, sizeof(*cu_k));
	assert_true(tokens != NULL && positions != NULL && cu_q != NULL && cu_k != NULL);
	wlb_shards_tokens(shards, rank, tokens);
	wlb_shards_positions(shards, rank, positions);
	wlb_shards_lengths(shards, rank, cu_q, cu_k);
	assert_true(cu_q[0] == 0 && cu_k[0] == 0 && cu_q[n] == rows);
	for (size_t s = 0; s < n; s++, shard++) {
		assert_true(shard->q_start == row && shard->q_count > 0);
		assert_true(shard->k_count == shard->q_offset + shard->q_count);
		assert_true(shard->k_count <= batch->tokens[shard->document]);
		assert_true(cu_q[s + 1] - cu_q[s] == shard->q_count && cu_k[s + 1] - cu_k[s] == shard->k_count);
		for (int32_t i = 0; i < shard->q_count; i++, row++) {
			assert_true(row == 0 || tokens[row] > tokens[row - 1]);
			assert_int_equal(document_of[tokens[row]], shard->document);
			assert_int_equal(position_of[tokens[row]], positions[row]);
			assert_int_equal(shard->q_offset + i, positions[row]);
			assert_int_equal(document_of[shard->k_start], shard->document);
			assert_int_equal(position_of[shard->k_start], 0);
			pairs += positions[row] + 1;
		}
	}
	assert_int_equal(row, rows);
	assert_int_equal(pairs, wlb_shards_pairs(shards, rank));
	free(tokens);
	free(positions);
	free(cu_q);
	free(cu_k);
	return pairs;
}

/* Every token is on one rank exactly, in the row that wlb_shards_rows gives. */
static void check_rows(const struct wlb_shards *shards)
{
	size_t sum = (size_t)shards->tokens;
	int32_t *rows = calloc(sum + 1, sizeof(*rows)), *tokens = calloc(sum + 1, sizeof(*tokens));
	assert_true(rows != NULL && tokens != NULL);
	wlb_shards_rows(shards, rows);
	for (int32_t r = 0; r < shards->ranks; r++)
		wlb_shards_tokens(shards, r, &tokens[shards->first_row[r]]);
	for (size_t t = 0; t < sum; t++) {
		assert_true(rows[t] >= 0 && rows[t] < shards->tokens);
		assert_int_equal(tokens[rows[t]], t);
	}
	free(rows);
	free(tokens);
}

static void check_shards(const struct wlb_shards *shards, int32_t ranks, const struct micro_batch *batch)
{
	int32_t *document_of = calloc((size_t)batch->sum + 1, sizeof(*document_of));
	int32_t *position_of = calloc((size_t)batch->sum + 1, sizeof(*position_of));
	assert_true(document_of != NULL && position_of != NULL);
	int64_t pairs = 0, expected = 0, t = 0;
	for (size_t i = 0; i < batch->count; i++)
		for (int64_t p = 0; p < batch->tokens[i]; p++, t++) {
			document_of[t] = (int32_t)i;
			position_of[t] = (int32_t)p;
			expected += p + 1;
		}
	assert_int_equal(shards->ranks, ranks);
	assert_int_equal(shards->tokens, batch->sum);
	assert_int_equal(shards->first_row[ranks], batch->sum);
	for (int32_t r = 0; r < ranks; r++)
		pairs += check_rank(shards, r, batch, document_of, position_of);
	assert_int_equal(pairs, expected);
	check_rows(shards);
	free(document_of);
	free(position_of);
}

/* Tokens of the fullest rank beyond those of the emptiest. */
static int64_t token_difference(const struct wlb_shards *shards)
{
	int64_t most = 0, least = INT64_MAX;
	for (int32_t r = 0; r < shards->ranks; r++) {
		int64_t rows = rows_of(shards, r);
		most = rows > most ? rows : most;
		least = rows < least ? rows : least;
	}
	return most - least;
}

/* The same of queries and keys that meet. */
static int64_t pair_difference(const struct wlb_shards *shards)
{
	int64_t most = 0, least = INT64_MAX;
	for (int32_t r = 0; r < shards->ranks; r++) {
		int64_t pairs = wlb_shards_pairs(shards, r);
		most = pairs > most ? pairs : most;
		least = pairs < least ? pairs : least;
	}
	return most - least;
}

struct spread {
	double difference; /* FLOPs of the busiest rank beyond those of the idlest */
	double share;      /* of the mean */
};

static struct spread work_spread(const struct wlb_shards *shards)
{
	double most = 0.0, least = 0.0, sum = 0.0;
	for (int32_t r = 0; r < shards->ranks; r++) {
		double work = wlb_shards_work(shards, r, &corpus_model);
		most = r == 0 || work > most ? work : most;
		least = r == 0 || work < least ? work : least;
		sum += work;
	}
	return (struct spread){most - least, sum > 0.0 ? (most - least) * shards->ranks / sum : 0.0};
}

/* Forward FLOPs of the last token of a document. */
static double last_token_work(int64_t tokens)
{
	return wlb_cost_document(&corpus_model, tokens) - wlb_cost_document(&corpus_model, tokens - 1);
}

static void holds_what_it_promises_on_any_documents(void **state)
{
	(void)state;
	struct wlb_shards shards = {0};
	struct micro_batch batch;
	uint64_t random = 1;
	for (int trial = 0; trial < 1500; trial++) {
		int32_t ranks = 1 + (int32_t)(corpus_random(&random) % MOST_RANKS);
		enum wlb_sharding sharding = trial % 2 ? WLB_SHARDING_SEQUENCE : WLB_SHARDING_DOCUMENT;
		fill_at_random(&batch, &random, ranks, 0);
		assert_int_equal(wlb_shard(sharding, NULL, batch.tokens, batch.count, ranks, &shards, NULL), 0);
		assert_int_equal(shards.sharding, sharding);
		check_shards(&shards, ranks, &batch);
		assert_true(token_difference(&shards) <= 1);
	}
	wlb_shards_free(&shards);
}

/* Of each document alone: two chunks a rank, chunks within one token, ranks within one token. */
static void cuts_every_document_into_paired_chunks(void **state)
{
	(void)state;
	struct wlb_shards shards = {0};
	for (int64_t tokens = 0; tokens < 400; tokens++) {
		for (int32_t ranks = 1; ranks <= 20; ranks++) {
			assert_int_equal(wlb_shard(WLB_SHARDING_DOCUMENT, NULL, &tokens, 1, ranks, &shards, NULL), 0);
			assert_true(token_difference(&shards) <= 1);
			int64_t shortest = tokens / (2 * ranks);
			for (int32_t r = 0; r < ranks; r++) {
				size_t first = shards.first_shard[r], n = shards.first_shard[r + 1] - first;
				assert_true(n <= 2);
				if (r == ranks - 1 || tokens < 2 * ranks)
					continue;
				assert_int_equal(n, 2);
				for (size_t s = first; s < first + 2; s++)
					assert_in_range(shards.shards[s].q_count, shortest, shortest + 1);
				assert_true(shards.shards[first].q_offset >= r * shortest);
				assert_true(shards.shards[first].q_offset <= r * (shortest + 1));
			}
		}
	}
	wlb_shards_free(&shards);
}

static void leaves_ranks_within_the_work_of_one_token(void **state)
{
	(void)state;
	struct wlb_shards shards = {0};
	struct micro_batch batch;
	uint64_t random = 2;
	for (int trial = 0; trial < 20000; trial++) {
		int32_t ranks = 1 + (int32_t)(corpus_random(&random) % MOST_RANKS);
		fill_at_random(&batch, &random, ranks, 2 * ranks);
		assert_int_equal(
			wlb_shard(WLB_SHARDING_DOCUMENT, NULL, batch.tokens, batch.count, ranks, &shards, NULL), 0);
		if (batch.sum == 0)
			continue;
		assert_true(work_spread(&shards).difference <= 1.1 * last_token_work(batch.longest));
		assert_true(pair_difference(&shards) <= 3 * batch.longest);
	}
	wlb_shards_free(&shards);
}

static void check_like_documents(int32_t ranks, uint64_t *random, uint64_t variety)
{
	struct wlb_shards shards = {0};
	struct micro_batch batch = {0};
	int64_t length = 2 * ranks + (int64_t)(corpus_random(random) % 2000);
	for (size_t count = 1 + corpus_random(random) % MOST_DOCUMENTS; batch.count < count;)
		add_document(&batch, length + (int64_t)(corpus_random(random) % variety));
	assert_int_equal(wlb_shard(WLB_SHARDING_DOCUMENT, NULL, batch.tokens, batch.count, ranks, &shards, NULL), 0);
	assert_true(pair_difference(&shards) <= 3 * batch.longest);
	wlb_shards_free(&shards);
}

/* However many documents there are, what each leaves does not add up. */
static void leaves_no_more_attention_after_many_documents_than_after_one(void **state)
{
	(void)state;
	uint64_t random = 3;
	for (int32_t ranks = 2; ranks <= MOST_RANKS; ranks *= 2)
		for (int trial = 0; trial < 40; trial++)
			check_like_documents(ranks, &random, trial % 2 ? 8 : 1);
}

/* A long document leaves up to its length; short ones after it take some of that away, wherever it came. */
static void corrects_long_documents_with_short_ones(void **state)
{
	(void)state;
	struct wlb_shards shards = {0};
	uint64_t random = 4;
	for (int32_t ranks = 2; ranks <= 16; ranks *= 2) {
		struct micro_batch batch = {0};
		double left = 0.0;
		for (int trial = 0; trial < 50; trial++) {
			memset(&batch, 0, sizeof(batch));
			while (batch.count < 300)
				add_document(&batch, 100 + (int64_t)(corpus_random(&random) % 500));
			add_document(&batch, 50000 + (int64_t)(corpus_random(&random) % 50000));
			assert_int_equal(
				wlb_shard(WLB_SHARDING_DOCUMENT, NULL, batch.tokens, batch.count, ranks, &shards, NULL),
				0);
			left += (double)pair_difference(&shards) / (double)batch.longest / 50.0;
		}
		assert_true(left <= 0.4);
	}
	wlb_shards_free(&shards);
}

/* The requirement: the work of ranks differs by at most 0.1% in every full micro-batch. */
static void gives_equal_work_to_ranks_of_a_full_window(void **state)
{
	(void)state;
	struct wlb_shards shards = {0};
	struct micro_batch batch;
	struct wlb_lengths lengths;
	wlb_lengths_init(&lengths, 5, 1.0);
	for (int trial = 0; trial < 400; trial++) {
		memset(&batch, 0, sizeof(batch));
		while (batch.sum < 131072)
			add_document(&batch, wlb_lengths_next(&lengths));
		for (int32_t ranks = 2; ranks <= 16; ranks *= 2) {
			assert_int_equal(
				wlb_shard(WLB_SHARDING_DOCUMENT, NULL, batch.tokens, batch.count, ranks, &shards, NULL),
				0);
			assert_true(token_difference(&shards) <= 1);
			assert_true(work_spread(&shards).share <= 0.001);
		}
	}
	wlb_shards_free(&shards);
}

static void takes_the_largest_documents(void **state)
{
	(void)state;
	struct wlb_shards shards = {0};
	const int64_t largest = (int64_t)1 << 30, half = largest / 2;
	for (int32_t ranks = 1; ranks <= 64; ranks += 21) {
		assert_int_equal(wlb_shard(WLB_SHARDING_DOCUMENT, NULL, &largest, 1, ranks, &shards, NULL), 0);
		int64_t pairs = 0;
		for (int32_t r = 0; r < ranks; r++)
			pairs += wlb_shards_pairs(&shards, r);
		assert_int_equal(pairs, half * (largest + 1));
		assert_true(token_difference(&shards) <= 1);
		assert_true(work_spread(&shards).share <= 1e-6);
	}
	wlb_shards_free(&shards);
}

static void shares_out_the_work_within_windows(void **state)
{
	(void)state;
	struct wlb_model model = corpus_model;
	struct wlb_shards shards = {0};
	const int64_t tokens[] = {3000, 200};
	model.sliding_window = 700;
	model.full_layers[0] = 5;
	double expected = wlb_cost_document(&model, 3000) + wlb_cost_document(&model, 200);
	assert_true(expected < wlb_cost_document(&corpus_model, 3000) + wlb_cost_document(&corpus_model, 200));
	for (int32_t ranks = 1; ranks <= 5; ranks += 2) {
		double sum = 0.0;
		assert_int_equal(wlb_shard(WLB_SHARDING_DOCUMENT, NULL, tokens, 2, ranks, &shards, NULL), 0);
		for (int32_t r = 0; r < ranks; r++)
			sum += wlb_shards_work(&shards, r, &model);
		assert_true(fabs(sum - expected) <= 1e-12 * expected);
	}
	wlb_shards_free(&shards);
}

static void gives_chunks_of_the_sequence_in_pairs(void **state)
{
	(void)state;
	struct wlb_shards shards = {0};
	static const int64_t tokens[] = {5, 3};
	static const struct wlb_shard expected[] = {
		{0, 0, 2, 0, 2, 0}, {1, 2, 2, 5, 3, 1}, {0, 0, 3, 0, 5, 2}, {1, 3, 1, 5, 1, 0}};
	assert_int_equal(wlb_shard(WLB_SHARDING_SEQUENCE, NULL, tokens, 2, 2, &shards, NULL), 0);
	assert_int_equal(shards.first_shard[1], 2);
	assert_int_equal(shards.first_shard[2], 4);
	assert_memory_equal(shards.shards, expected, sizeof(expected));
	wlb_shards_free(&shards);
}

static void gives_a_document_whole_to_one_rank_alone(void **state)
{
	(void)state;
	struct wlb_shards shards = {0};
	static const int64_t tokens[] = {5, 0, 4};
	static const struct wlb_shard expected[] = {{0, 0, 5, 0, 5, 0}, {2, 5, 4, 5, 4, 0}};
	for (int sharding = WLB_SHARDING_SEQUENCE; sharding <= WLB_SHARDING_DOCUMENT; sharding++) {
		assert_int_equal(wlb_shard((enum wlb_sharding)sharding, NULL, tokens, 3, 1, &shards, NULL), 0);
		assert_int_equal(shards.first_shard[1], 2);
		assert_memory_equal(shards.shards, expected, sizeof(expected));
	}
	wlb_shards_free(&shards);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holds_what_it_promises_on_any_documents),
		cmocka_unit_test(cuts_every_document_into_paired_chunks),
		cmocka_unit_test(leaves_ranks_within_the_work_of_one_token),
		cmocka_unit_test(leaves_no_more_attention_after_many_documents_than_after_one),
		cmocka_unit_test(corrects_long_documents_with_short_ones),
		cmocka_unit_test(gives_equal_work_to_ranks_of_a_full_window),
		cmocka_unit_test(takes_the_largest_documents),
		cmocka_unit_test(shares_out_the_work_within_windows),
		cmocka_unit_test(gives_chunks_of_the_sequence_in_pairs),
		cmocka_unit_test(gives_a_document_whole_to_one_rank_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Documents over groups of ranks: what every result must hold, and how equal the ranks get. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/bench/pack/corpus.h"

enum { MOST_SLOTS = 1024 };

static void check_place(const struct wlb_place *place, int32_t ranks, int32_t micro_batches)
{
	assert_in_range(place->micro_batch, 0, micro_batches - 1);
	assert_true(place->ranks >= 1 && place->ranks <= ranks);
	assert_true(place->ranks == ranks || (place->ranks & (place->ranks - 1)) == 0);
	assert_int_equal(place->first_rank % place->ranks, 0);
	assert_in_range(place->first_rank, 0, ranks - place->ranks);
}

/* Every document has its place, and the loads are those of the places. */
static void check_spread(const int64_t *tokens, size_t count, int32_t ranks, int32_t micro_batches, int64_t max_tokens,
                         const struct wlb_place *places, const struct wlb_load *loads)
{
	static double work[MOST_SLOTS];
	int64_t sum = 0, loaded = 0;
	for (int32_t slot = 0; slot < ranks * micro_batches; slot++) {
		work[slot] = 0.0;
		assert_true(loads[slot].tokens <= max_tokens);
		loaded += loads[slot].tokens;
	}
	for (size_t i = 0; i < count; i++) {
		const struct wlb_place *p = &places[i];
		check_place(p, ranks, micro_batches);
		sum += tokens[i];
		for (int32_t r = 0; r < p->ranks; r++)
			work[p->micro_batch * ranks + p->first_rank + r] +=
				wlb_cost_document(&corpus_model, tokens[i]) / p->ranks;
	}
	assert_int_equal(sum, loaded);
	for (int32_t slot = 0; slot < ranks * micro_batches; slot++)
		assert_true(fabs(work[slot] - loads[slot].work) <= 1e-9 * work[slot]);
}

static double imbalance(const struct wlb_load *loads, int32_t slots)
{
	double most = 0.0, sum = 0.0;
	for (int32_t slot = 0; slot < slots; slot++) {
		most = fmax(most, loads[slot].work);
		sum += loads[slot].work;
	}
	return sum > 0.0 ? most * slots / sum : 1.0;
}

static void holds_what_it_promises_on_any_documents(void **state)
{
	(void)state;
	static struct wlb_load loads[MOST_SLOTS];
	uint64_t random = 1;
	int refused = 0;
	for (int trial = 0; trial < 2000; trial++) {
		int32_t ranks = 1 + (int32_t)(corpus_random(&random) % 40);
		int32_t micro_batches = 1 + (int32_t)(corpus_random(&random) % 4);
		size_t count = corpus_random(&random) % 100;
		int64_t tokens[100], max_tokens = 1000;
		struct wlb_place places[100];
		for (size_t i = 0; i < count; i++)
			tokens[i] = (int64_t)(corpus_random(&random) % (corpus_random(&random) % 5 == 0 ? 3000 : 100));
		if (wlb_dynamic_cp(&corpus_model, tokens, count, ranks, micro_batches, max_tokens, places, loads,
		                   NULL) < 0)
			refused++;
		else
			check_spread(tokens, count, ranks, micro_batches, max_tokens, places, loads);
	}
	assert_true(refused < 700);
}

/* The requirement: no document waits, and the work of ranks differs by at most 1%. */
static void makes_ranks_equal_without_delay(void **state)
{
	(void)state;
	static struct wlb_load loads[MOST_SLOTS];
	for (int32_t ranks = 8; ranks <= 64; ranks += 8) {
		struct corpus corpus = {0};
		double mean = 0.0;
		wlb_lengths_init(&corpus.lengths, 9, 1.0);
		for (int k = 0; k < 100; k++) {
			size_t count = corpus_next(&corpus, 131072, ranks / 8 * 131072);
			int64_t *tokens = calloc(count, sizeof(*tokens));
			struct wlb_place *places = calloc(count, sizeof(*places));
			assert_true(tokens != NULL && places != NULL);
			for (size_t i = 0; i < count; i++)
				tokens[i] = corpus.batch[i].tokens;
			assert_int_equal(
				wlb_dynamic_cp(&corpus_model, tokens, count, ranks, 1, 32768, places, loads, NULL), 0);
			check_spread(tokens, count, ranks, 1, 32768, places, loads);
			mean += imbalance(loads, ranks) / 100.0;
			free(tokens);
			free(places);
		}
		assert_true(mean <= 1.01);
		corpus_free(&corpus);
	}
}

static void keeps_small_documents_on_one_rank_and_splits_the_long(void **state)
{
	(void)state;
	static struct wlb_load loads[8];
	struct wlb_place places[101];
	int64_t tokens[101];
	uint64_t random = 1;
	tokens[0] = 100000;
	for (int i = 1; i < 101; i++)
		tokens[i] = (int64_t)(1000 + corpus_random(&random) % 3000);
	assert_int_equal(wlb_dynamic_cp(&corpus_model, tokens, 101, 8, 1, 100000, places, loads, NULL), 0);
	assert_true(places[0].ranks > 1);
	int split = 0;
	for (int i = 1; i < 101; i++)
		split += places[i].ranks > 1;
	assert_int_equal(split, 0);
}

static void splits_what_does_not_fit_one_rank(void **state)
{
	(void)state;
	static struct wlb_load loads[8];
	static const int64_t tokens[] = {1000, 1000, 1000, 1000};
	struct wlb_place places[4];
	assert_int_equal(wlb_dynamic_cp(&corpus_model, tokens, 4, 8, 1, 500, places, loads, NULL), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(places[i].ranks, 2);
}

static void sums_no_tokens_beyond_what_64_bits_hold(void **state)
{
	(void)state;
	static const int64_t most = (int64_t)1 << 60, longest[] = {INT64_MAX, INT64_MAX};
	static struct wlb_load loads[16];
	struct wlb_place places[2];
	struct wlb_error error;
	assert_int_equal(wlb_dynamic_cp(&corpus_model, longest, 1, 8, 2, most, places, loads, &error), 0);
	assert_int_equal(places[0].ranks, 8);
	assert_int_equal(loads[0].tokens + loads[8].tokens, most);
	assert_int_equal(wlb_dynamic_cp(&corpus_model, longest, 2, 8, 1, most, places, loads, &error), -1);
	assert_int_equal(wlb_dynamic_cp(&corpus_model, longest, 1, 8, 1, INT64_MAX, places, loads, &error), -1);
	assert_string_equal(error.message, "max_tokens is 9223372036854775807: it must be between 0 and "
	                                   "1152921504606846976");
}

static double length(const void *context, int64_t tokens)
{
	(void)context;
	return (double)tokens;
}

static double no_number(const void *context, int64_t tokens)
{
	(void)context;
	return tokens > 1 ? NAN : 1.0;
}

static int place_in(struct wlb_rank_space space, double (*work)(const void *context, int64_t tokens),
                    const int64_t *tokens, size_t count, struct wlb_place *places, struct wlb_load *loads,
                    int *in_groups)
{
	struct wlb_error error = {""};
	struct wlb_placement placement;
	struct wlb_placer *placer = wlb_placer_new(&space, work, NULL, &error);
	assert_non_null(placer);
	int rc = wlb_placer_place(placer, tokens, count, 1, &placement, &error);
	*in_groups = rc == 0 && placement.in_groups;
	if (rc == 0) {
		memcpy(places, placement.places, count * sizeof(*places));
		memcpy(loads, placement.loads, (size_t)space.ranks * sizeof(*loads));
	}
	if (rc < 0)
		assert_string_equal(error.message,
		                    "document 0: the work of 60 tokens is nan: it must be finite and above 0");
	wlb_placer_free(placer);
	return rc;
}

/* By length the documents of 30 tokens are equal to one of 60 on two ranks; by FLOPs they would not be. */
static void weighs_with_the_callers_own_work(void **state)
{
	(void)state;
	static const int64_t tokens[] = {60, 30, 30};
	struct wlb_place places[3];
	struct wlb_load loads[4];
	int in_groups;
	assert_int_equal(place_in((struct wlb_rank_space){4, 4, 40, 0.0}, length, tokens, 3, places, loads, &in_groups),
	                 0);
	assert_int_equal(places[0].ranks, 2);
	assert_int_equal(in_groups, 0);
	for (int r = 0; r < 4; r++)
		assert_true(loads[r].work == 30.0);
	assert_int_equal(place_in((struct wlb_rank_space){4, 4, 14, 0.0}, length, tokens, 3, places, loads, &in_groups),
	                 1);
	assert_int_equal(
		place_in((struct wlb_rank_space){4, 4, 40, 0.0}, no_number, tokens, 3, places, loads, &in_groups), -1);
}

/* All on two ranks would exchange too many keys; where none has space by itself, groups have them together. */
static void exchanges_no_more_keys_than_there_is_memory_for(void **state)
{
	(void)state;
	static const int64_t tokens[] = {60, 60, 60, 60}, few[] = {4, 4, 4, 4, 4, 4, 4, 4};
	struct wlb_place places[8];
	struct wlb_load loads[4];
	int in_groups;
	assert_int_equal(place_in((struct wlb_rank_space){4, 1, 60, 0.0}, length, tokens, 4, places, loads, &in_groups),
	                 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(places[i].ranks, 1);
	assert_int_equal(in_groups, 0);
	assert_int_equal(place_in((struct wlb_rank_space){3, 3, 11, 0.0}, length, few, 8, places, loads, &in_groups),
	                 0);
	assert_int_equal(in_groups, 1);
	for (int r = 0; r < 3; r++) {
		assert_int_equal(loads[r].tokens, r < 2 ? 11 : 10);
		assert_true(fabs(loads[r].work - 32.0 / 3.0) < 1e-9);
	}
}

/* Whole documents leave one rank with 50 of 90, and in halves both have 45, for the keys of 45 other tokens, of which a
 * twentieth of 45 is not waited for. */
static void equal_ranks_are_worth_their_keys(void **state)
{
	(void)state;
	static const int64_t tokens[] = {40, 30, 20};
	static const struct {
		double key_work, most;
		int32_t ranks;
	} cases[] = {{0.0, 45.0, 2}, {0.15, 45.0, 2}, {0.17, 50.0, 1}, {10.0, 50.0, 1}};
	struct wlb_place places[3];
	struct wlb_load loads[2];
	struct wlb_placement placement;
	struct wlb_error error;
	int in_groups;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct wlb_rank_space space = {2, 2, 100, cases[c].key_work};
		assert_int_equal(place_in(space, length, tokens, 3, places, loads, &in_groups), 0);
		for (int i = 0; i < 3; i++)
			assert_int_equal(places[i].ranks, cases[c].ranks);
		assert_true(fmax(loads[0].work, loads[1].work) == cases[c].most);
	}
	struct wlb_rank_space wrong = {2, 2, 100, NAN};
	struct wlb_placer *placer = wlb_placer_new(&wrong, length, NULL, &error);
	assert_int_equal(wlb_placer_place(placer, tokens, 3, 1, &placement, &error), -1);
	assert_string_equal(error.message, "key_work is nan: it must be finite and at least 0");
	wlb_placer_free(placer);
}

static void lists_the_numbers_of_ranks(void **state)
{
	(void)state;
	assert_int_equal(wlb_dynamic_cp_smaller(2), 1);
	assert_int_equal(wlb_dynamic_cp_smaller(8), 4);
	assert_int_equal(wlb_dynamic_cp_smaller(56), 32);
	int sizes = 1;
	for (int32_t ranks = (1 << 20) - 1; ranks > 1; ranks = wlb_dynamic_cp_smaller(ranks))
		sizes++;
	assert_in_range(sizes, 2, WLB_DYNAMIC_CP_SIZES);
}

/* Megatron Core's gpus_needed: max(1, 2 ** ceil(log2(seq_len / max_seq_len_per_rank))). */
static void chooses_ranks_by_length_as_megatron_core(void **state)
{
	(void)state;
	static const int64_t tokens[] = {0, 1, 100, 101, 200, 201, 400, 401, 800};
	static const int32_t needed[] = {1, 1, 1, 2, 2, 4, 4, 8, 8};
	struct wlb_place places[9];
	struct wlb_load loads[8];
	struct wlb_error error;
	assert_int_equal(wlb_hybrid_cp(tokens, 9, 8, 1, 100, places, loads, &error), 0);
	double work[8] = {0.0};
	int64_t sum = 0;
	for (int i = 0; i < 9; i++) {
		check_place(&places[i], 8, 1);
		assert_int_equal(places[i].ranks, needed[i]);
		for (int32_t r = 0; r < needed[i]; r++)
			work[places[i].first_rank + r] += (double)(tokens[i] * tokens[i]) / needed[i];
	}
	for (int r = 0; r < 8; r++) {
		assert_true(loads[r].work == work[r]);
		sum += loads[r].tokens;
	}
	assert_int_equal(sum, 2204);
}

/* By tokens^2: 70 and 50 on one rank, 60, 60 and 50 on the other. An exchange of 60 and 50 would be more equal. */
static void puts_the_longest_first_on_the_least_loaded(void **state)
{
	(void)state;
	static const int64_t tokens[] = {50, 50, 60, 60, 70}, too_long[] = {201};
	static const int32_t ranks[] = {0, 1, 1, 1, 0};
	struct wlb_place places[5];
	struct wlb_load loads[2];
	struct wlb_error error;
	assert_int_equal(wlb_hybrid_cp(tokens, 5, 2, 1, 100, places, loads, &error), 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(places[i].first_rank, ranks[i]);
	assert_true(loads[0].work == 7400.0 && loads[1].work == 9700.0);
	assert_int_equal(wlb_hybrid_cp(too_long, 1, 2, 1, 100, places, loads, &error), -1);
	assert_string_equal(error.message, "document 0 of 201 tokens has more than 100 on each of 2 ranks");
	assert_int_equal(wlb_hybrid_cp(tokens, 5, 2, 1, 0, places, loads, &error), -1);
	assert_string_equal(error.message, "longest_part is 0: it must be between 1 and 2^60");
}

static void refuses_what_cannot_be(void **state)
{
	(void)state;
	static struct wlb_load loads[8];
	static const int64_t tokens[] = {1000, -3};
	struct wlb_place places[2];
	struct wlb_error error;
	assert_int_equal(wlb_dynamic_cp(&corpus_model, tokens, 1, 8, 1, 124, places, loads, &error), -1);
	assert_string_equal(error.message, "1 documents do not fit on 8 ranks of 124 tokens in 1 micro-batches: raise "
	                                   "the number of micro-batches");
	assert_int_equal(wlb_dynamic_cp(&corpus_model, tokens, 2, 8, 1, 1000, places, loads, &error), -1);
	assert_string_equal(error.message, "document 1 has -3 tokens: it must not be negative");
	assert_int_equal(wlb_dynamic_cp(&corpus_model, tokens, 1, 0, 1, 1000, places, loads, &error), -1);
	assert_int_equal(wlb_dynamic_cp(&corpus_model, tokens, 1, 1 << 20, 2, 1000, places, loads, &error), -1);
	assert_string_equal(error.message,
	                    "1048576 ranks in 2 micro-batches: both must be at least 1, their product at "
	                    "most 1048576");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holds_what_it_promises_on_any_documents),
		cmocka_unit_test(makes_ranks_equal_without_delay),
		cmocka_unit_test(keeps_small_documents_on_one_rank_and_splits_the_long),
		cmocka_unit_test(splits_what_does_not_fit_one_rank),
		cmocka_unit_test(sums_no_tokens_beyond_what_64_bits_hold),
		cmocka_unit_test(weighs_with_the_callers_own_work),
		cmocka_unit_test(exchanges_no_more_keys_than_there_is_memory_for),
		cmocka_unit_test(equal_ranks_are_worth_their_keys),
		cmocka_unit_test(lists_the_numbers_of_ranks),
		cmocka_unit_test(chooses_ranks_by_length_as_megatron_core),
		cmocka_unit_test(puts_the_longest_first_on_the_least_loaded),
		cmocka_unit_test(refuses_what_cannot_be),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

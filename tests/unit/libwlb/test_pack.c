/* Dealing documents to micro-batches: nothing lost, no limit broken, close to the best balance there can be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "libwlb/wlb.h"

static const struct wlb_model model = {.hidden_size = 64,
                                       .intermediate_size = 128,
                                       .num_hidden_layers = 2,
                                       .num_attention_heads = 4,
                                       .num_key_value_heads = 4,
                                       .head_dim = 16,
                                       .vocab_size = 257};

enum { MOST_DOCUMENTS = 500, MOST_BINS = 64 };

/* A generator of our own, so that the cases are the same everywhere. */
static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

/* Few long documents among many short ones, as corpora have them. */
static void make_lengths(uint64_t *seed, int32_t *lengths, int count)
{
	for (int i = 0; i < count; i++)
		lengths[i] = (int32_t)(next_random(seed) % (UINT64_C(1) << (1 + next_random(seed) % 14)));
}

static void pack(const int32_t *lengths, int count, int bins, int64_t max_tokens, int32_t *bin_of)
{
	struct wlb_error error;
	for (int i = 0; i < count; i++)
		bin_of[i] = -1;
	if (wlb_pack_greedy(&model, lengths, count, bins, max_tokens, bin_of, &error) < 0)
		fail_msg("%s", error.message);
}

/* Every document in one bin that exists, no bin above the limit. */
static void check_placement(const int32_t *lengths, int count, int bins, int64_t max_tokens, const int32_t *bin_of)
{
	int64_t tokens[MOST_BINS] = {0};
	for (int i = 0; i < count; i++) {
		assert_in_range(bin_of[i], 0, bins - 1);
		tokens[bin_of[i]] += lengths[i];
	}
	for (int b = 0; b < bins; b++)
		assert_true(tokens[b] <= max_tokens);
}

static double largest_load(const int32_t *lengths, int count, int bins, const int32_t *bin_of)
{
	double loads[MOST_BINS] = {0}, largest = 0;
	for (int i = 0; i < count; i++)
		loads[bin_of[i]] += wlb_cost_document(&model, lengths[i]);
	for (int b = 0; b < bins; b++)
		largest = loads[b] > largest ? loads[b] : largest;
	return largest;
}

/* No placement at all can be better than this: the mean, the largest document, and, of the bins + 1 largest, the two
 * that must share a bin. */
static double lower_bound(const int32_t *lengths, int count, int bins)
{
	double costs[MOST_DOCUMENTS], sum = 0;
	for (int i = 0; i < count; i++) {
		double cost = wlb_cost_document(&model, lengths[i]);
		int at = i;
		for (; at > 0 && costs[at - 1] < cost; at--)
			costs[at] = costs[at - 1];
		costs[at] = cost;
		sum += cost;
	}
	double bound = sum / bins;
	if (count > 0 && costs[0] > bound)
		bound = costs[0];
	if (count > bins && costs[bins - 1] + costs[bins] > bound)
		bound = costs[bins - 1] + costs[bins];
	return bound;
}

static void test_nothing_lost_and_limits_held(void **state)
{
	(void)state;
	uint64_t seed = 1;
	for (int round = 0; round < 200; round++) {
		int32_t lengths[MOST_DOCUMENTS], bin_of[MOST_DOCUMENTS];
		int count = (int)(next_random(&seed) % MOST_DOCUMENTS),
		    bins = 1 + (int)(next_random(&seed) % MOST_BINS);
		int64_t sum = 0, longest = 0;
		make_lengths(&seed, lengths, count);
		for (int i = 0; i < count; i++) {
			sum += lengths[i];
			longest = lengths[i] > longest ? lengths[i] : longest;
		}
		/* So much room that the greedy order must find a place: no bin can be above it for all. */
		int64_t max_tokens = sum / bins + longest + 1;
		pack(lengths, count, bins, max_tokens, bin_of);
		check_placement(lengths, count, bins, max_tokens, bin_of);
	}
}

/* The least largest load there is, by trying every placement of documents `at` and after. */
static double optimum(const double *costs, int count, int bins, double *loads, int at)
{
	if (at == count) {
		double largest = 0;
		for (int b = 0; b < bins; b++)
			largest = loads[b] > largest ? loads[b] : largest;
		return largest;
	}
	double best = 1e300;
	for (int b = 0; b < bins; b++) {
		loads[b] += costs[at];
		double found = optimum(costs, count, bins, loads, at + 1);
		best = found < best ? found : best;
		loads[b] -= costs[at];
		if (loads[b] == 0)
			break; /* bins that are still empty are all alike */
	}
	return best;
}

/* Graham 1969: longest first is within 4/3 - 1/(3 m) of the optimum, where no limit of tokens interferes. */
static void test_graham_bound(void **state)
{
	(void)state;
	uint64_t seed = 2;
	for (int round = 0; round < 300; round++) {
		int32_t lengths[9], bin_of[9];
		double costs[9], loads[4] = {0};
		int count = 1 + (int)(next_random(&seed) % 9), bins = 1 + (int)(next_random(&seed) % 4);
		make_lengths(&seed, lengths, count);
		for (int i = 0; i < count; i++)
			costs[i] = wlb_cost_document(&model, lengths[i]);
		pack(lengths, count, bins, INT32_MAX, bin_of);
		double best = optimum(costs, count, bins, loads, 0);
		double bound = 4.0 / 3.0 - 1.0 / (3.0 * bins);
		assert_true(largest_load(lengths, count, bins, bin_of) <= best * bound * (1 + 1e-12));
	}
}

/* With many documents to a bin the lower bound is as good as the optimum, and greedy comes close to it. */
static void test_balance_of_many(void **state)
{
	(void)state;
	uint64_t seed = 3;
	for (int round = 0; round < 50; round++) {
		int32_t lengths[MOST_DOCUMENTS], bin_of[MOST_DOCUMENTS];
		int bins = 2 + (int)(next_random(&seed) % 8);
		make_lengths(&seed, lengths, MOST_DOCUMENTS);
		pack(lengths, MOST_DOCUMENTS, bins, INT32_MAX, bin_of);
		double largest = largest_load(lengths, MOST_DOCUMENTS, bins, bin_of);
		assert_true(largest <= 1.01 * lower_bound(lengths, MOST_DOCUMENTS, bins));
	}
}

static void test_equal_inputs_give_equal_outputs(void **state)
{
	(void)state;
	uint64_t seed = 4;
	int32_t lengths[MOST_DOCUMENTS], once[MOST_DOCUMENTS], again[MOST_DOCUMENTS];
	make_lengths(&seed, lengths, MOST_DOCUMENTS);
	for (int i = 0; i < MOST_DOCUMENTS; i += 3)
		lengths[i] = 77; /* ties */
	pack(lengths, MOST_DOCUMENTS, 7, INT32_MAX, once);
	pack(lengths, MOST_DOCUMENTS, 7, INT32_MAX, again);
	assert_memory_equal(once, again, sizeof(once));
}

static void test_edges(void **state)
{
	(void)state;
	struct wlb_error error;
	const int32_t full[] = {10, 10, 10, 0}, halves[] = {6, 6, 6}, negative[] = {-1};
	int32_t bin_of[4];
	pack(full, 0, 3, 10, bin_of);
	pack(full, 4, 3, 10, bin_of);
	check_placement(full, 4, 3, 10, bin_of);
	assert_int_equal(wlb_pack_greedy(&model, full, 4, 2, 10, bin_of, &error), -1);
	assert_non_null(strstr(error.message, "4 documents do not fit 2 micro-batches of 10 tokens"));
	assert_int_equal(wlb_pack_greedy(&model, halves, 3, 2, 10, bin_of, &error), -1);
	assert_int_equal(wlb_pack_greedy(&model, full, 1, 1, 9, bin_of, &error), -1);
	assert_non_null(strstr(error.message, "document 0 has 10 tokens"));
	assert_int_equal(wlb_pack_greedy(&model, negative, 1, 1, 9, bin_of, &error), -1);
	assert_non_null(strstr(error.message, "document 0 has -1 tokens"));
	assert_int_equal(wlb_pack_greedy(&model, full, 1, 0, 9, bin_of, &error), -1);
	assert_non_null(strstr(error.message, "0 micro-batches"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_lost_and_limits_held),
		cmocka_unit_test(test_graham_bound),
		cmocka_unit_test(test_balance_of_many),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_equal_inputs_give_equal_outputs),
	};
	return cmocka_run_group_tests_name("pack", tests, NULL, NULL);
}

/* The assignment of one step against the optimum that an exhaustive search finds. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/bench/pack/corpus.h"

enum { MOST_PIECES = 14, MOST_BINS = 4 };

/* Branch and bound: span by span into every bin that differs and has space, unless that reaches the best. */
struct solver {
	const int64_t *tokens;
	int count;
	int bins;
	int64_t max_tokens;
	double work[MOST_BINS];
	int64_t used[MOST_BINS];
	double best;
};

static void solve(struct solver *s, int span, double heaviest)
{
	if (heaviest >= s->best)
		return;
	if (span == s->count) {
		s->best = heaviest;
		return;
	}
	double work = wlb_cost_document(&corpus_model, s->tokens[span]);
	for (int b = 0; b < s->bins; b++) {
		if (s->used[b] + s->tokens[span] > s->max_tokens)
			continue;
		double before = s->work[b];
		s->work[b] += work;
		s->used[b] += s->tokens[span];
		solve(s, span + 1, s->work[b] > heaviest ? s->work[b] : heaviest);
		s->work[b] = before;
		s->used[b] -= s->tokens[span];
		if (before == 0.0)
			break;
	}
}

/* Work of the heaviest micro-batch at its least, or a negative number where nothing fits. */
static double optimum(const int64_t *tokens, int count, int bins, int64_t max_tokens)
{
	struct solver s = {.tokens = tokens, .count = count, .bins = bins, .max_tokens = max_tokens, .best = 1e300};
	solve(&s, 0, 0.0);
	return s.best < 1e300 ? s.best : -1.0;
}

static double heaviest(const int64_t *tokens, int count, int bins, int64_t max_tokens, const int32_t *bin_of)
{
	double work[MOST_BINS] = {0}, most = 0.0;
	int64_t used[MOST_BINS] = {0};
	for (int i = 0; i < count; i++) {
		assert_in_range(bin_of[i], 0, bins - 1);
		work[bin_of[i]] += wlb_cost_document(&corpus_model, tokens[i]);
		used[bin_of[i]] += tokens[i];
	}
	for (int b = 0; b < bins; b++) {
		assert_true(used[b] <= max_tokens);
		most = work[b] > most ? work[b] : most;
	}
	return most;
}

static void comes_near_the_optimum(void **state)
{
	(void)state;
	uint64_t random = 1;
	double excess = 0.0;
	int solved = 0, missed = 0;
	for (int trial = 0; trial < 500; trial++) {
		int64_t tokens[MOST_PIECES];
		int32_t bin_of[MOST_PIECES];
		int count = 4 + (int)(corpus_random(&random) % (MOST_PIECES - 3));
		int bins = 2 + (int)(corpus_random(&random) % (MOST_BINS - 1));
		for (int i = 0; i < count; i++)
			tokens[i] = (int64_t)(1 + corpus_random(&random) % 60000);
		int64_t max_tokens = 131072;
		double best = optimum(tokens, count, bins, max_tokens);
		if (wlb_pack_balanced(&corpus_model, tokens, (size_t)count, bins, max_tokens, bin_of, NULL) < 0) {
			missed += best > 0.0;
			continue;
		}
		double ratio = heaviest(tokens, count, bins, max_tokens, bin_of) / best;
		assert_true(ratio >= 1.0 - 1e-12);
		/* Graham's bound for longest first; exchanges only lower it. */
		assert_true(ratio <= 4.0 / 3.0);
		excess += ratio - 1.0;
		solved++;
	}
	assert_true(solved > 350);
	assert_true(missed <= 5);
	assert_true(excess / solved < 0.015);
}

static void exchanges_what_longest_first_puts_wrong(void **state)
{
	(void)state;
	/* Longest first gives 3+3+... = 7 against 5; the optimum, {3,3} and {2,2,2}, is even. */
	static const int64_t tokens[] = {3, 3, 2, 2, 2};
	int32_t bin_of[5];
	assert_int_equal(wlb_pack_balanced(&corpus_model, tokens, 5, 2, 100, bin_of, NULL), 0);
	int64_t used[2] = {0};
	for (int i = 0; i < 5; i++)
		used[bin_of[i]] += tokens[i];
	assert_int_equal(used[0], 6);
	assert_int_equal(used[1], 6);
}

static void gives_the_same_for_the_same(void **state)
{
	(void)state;
	int64_t tokens[200];
	int32_t first[200], second[200];
	uint64_t random = 3;
	for (int i = 0; i < 200; i++)
		tokens[i] = (int64_t)(corpus_random(&random) % 5) * 100;
	assert_int_equal(wlb_pack_balanced(&corpus_model, tokens, 200, 7, 100000, first, NULL), 0);
	assert_int_equal(wlb_pack_balanced(&corpus_model, tokens, 200, 7, 100000, second, NULL), 0);
	assert_memory_equal(first, second, sizeof(first));
}

static void refuses_what_fits_nowhere(void **state)
{
	(void)state;
	static const int64_t tokens[] = {5, 11, 5}, negative[] = {1, -2};
	int32_t bin_of[3];
	struct wlb_error error;
	assert_int_equal(wlb_pack_balanced(&corpus_model, tokens, 3, 2, 10, bin_of, &error), -1);
	assert_string_equal(error.message, "span 1 of 11 tokens does not fit in 2 micro-batches of 10");
	assert_int_equal(wlb_pack_balanced(&corpus_model, negative, 2, 2, 10, bin_of, &error), -1);
	assert_string_equal(error.message, "span 1 has -2 tokens: it must not be negative");
	assert_int_equal(wlb_pack_balanced(&corpus_model, tokens, 3, 0, 10, bin_of, &error), -1);
	assert_string_equal(error.message, "0 micro-batches: it must be between 1 and 16777216");
	assert_int_equal(wlb_pack_balanced(&corpus_model, tokens, 3, (1 << 24) + 1, 10, bin_of, &error), -1);
	assert_string_equal(error.message, "16777217 micro-batches: it must be between 1 and 16777216");
}

/* The short span is packed first. */
static double less_for_more_tokens(const void *unused, int64_t tokens)
{
	(void)unused;
	return 1.0 / (double)tokens;
}

static void sums_no_tokens_beyond_what_64_bits_hold(void **state)
{
	(void)state;
	static const int64_t most = (int64_t)1 << 60, beyond[] = {1, INT64_MAX}, full[] = {most, most, 5, most - 5};
	int32_t bin_of[4];
	struct wlb_error error;
	struct wlb_balancer *balancer = wlb_balancer_new(less_for_more_tokens, NULL, NULL);
	assert_int_equal(wlb_balancer_pack(balancer, beyond, 2, 1, most, bin_of, &error), 1);
	wlb_balancer_free(balancer);
	assert_string_equal(error.message, "span 1 of 9223372036854775807 tokens does not fit in 1 micro-batches of "
	                                   "1152921504606846976");
	assert_int_equal(wlb_pack_balanced(&corpus_model, full, 4, 3, most, bin_of, &error), 0);
	assert_int_equal(bin_of[2], bin_of[3]);
	assert_int_equal(wlb_pack_balanced(&corpus_model, full, 1, 3, most + 1, bin_of, &error), -1);
	assert_string_equal(error.message, "max_tokens is 1152921504606846977: it must be between 0 and "
	                                   "1152921504606846976");
	assert_int_equal(wlb_pack_balanced(&corpus_model, full, 1, 3, -1, bin_of, &error), -1);
	assert_string_equal(error.message, "max_tokens is -1: it must be between 0 and 1152921504606846976");
}

static double squared(const void *unit, int64_t tokens)
{
	return *(const double *)unit * (double)tokens * (double)tokens;
}

static void takes_work_from_a_function(void **state)
{
	(void)state;
	/* 6 x 6 is 4 x 3 x 3: equal only by squares. */
	static const int64_t tokens[] = {6, 3, 3, 3, 3};
	static const double unit = 0.5;
	int32_t bin_of[5];
	struct wlb_balancer *balancer = wlb_balancer_new(squared, &unit, NULL);
	assert_int_equal(wlb_balancer_pack(balancer, tokens, 5, 2, 12, bin_of, NULL), 0);
	for (int i = 1; i < 5; i++)
		assert_int_equal(bin_of[i], 1 - bin_of[0]);
	wlb_balancer_free(balancer);
}

static void tells_what_does_not_fit_from_an_error(void **state)
{
	(void)state;
	static const int64_t full[] = {5, 5, 5}, negative[] = {1, -2};
	static const double unit = 1.0;
	int32_t bin_of[3];
	struct wlb_error error;
	struct wlb_balancer *balancer = wlb_balancer_new(squared, &unit, NULL);
	assert_int_equal(wlb_balancer_pack(balancer, full, 3, 2, 9, bin_of, &error), 1);
	assert_string_equal(error.message, "span 2 of 5 tokens does not fit in 2 micro-batches of 9");
	assert_int_equal(wlb_balancer_pack(balancer, negative, 2, 2, 9, bin_of, &error), -1);
	assert_int_equal(wlb_balancer_pack(balancer, full, 3, 0, 9, bin_of, &error), -1);
	assert_int_equal(wlb_balancer_pack(balancer, full, 3, 3, 9, bin_of, &error), 0);
	wlb_balancer_free(balancer);
	wlb_balancer_free(NULL);
}

static double what_it_is_given(const void *work, int64_t tokens)
{
	return tokens == 3 ? *(const double *)work : (double)tokens;
}

static void refuses_work_that_is_none(void **state)
{
	(void)state;
	static const struct {
		double work;
		const char *message;
	} cases[] = {
		{NAN, "span 1: the work of 3 tokens is nan: it must be finite and above 0"},
		{INFINITY, "span 1: the work of 3 tokens is inf: it must be finite and above 0"},
		{-1.5, "span 1: the work of 3 tokens is -1.5: it must be finite and above 0"},
		{0.0, "span 1: the work of 3 tokens is 0: it must be finite and above 0"},
	};
	static const int64_t tokens[] = {0, 3, 5};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int32_t bin_of[3];
		struct wlb_error error;
		struct wlb_balancer *balancer = wlb_balancer_new(what_it_is_given, &cases[i].work, NULL);
		assert_int_equal(wlb_balancer_pack(balancer, tokens, 3, 2, 9, bin_of, &error), -1);
		assert_string_equal(error.message, cases[i].message);
		assert_int_equal(wlb_balancer_pack(balancer, tokens, 1, 2, 9, bin_of, NULL), 0);
		wlb_balancer_free(balancer);
	}
}

static double flops(const void *context, int64_t tokens)
{
	(void)context;
	return wlb_cost_document(&corpus_model, tokens);
}

/* Steps of all sizes, larger and smaller by turns: each as if it were the first. */
static void deals_every_step_as_the_first(void **state)
{
	(void)state;
	struct wlb_balancer *balancer = wlb_balancer_new(flops, NULL, NULL);
	uint64_t random = 5;
	for (int step = 0; step < 200; step++) {
		int64_t tokens[300];
		int32_t first[300], later[300];
		size_t count = corpus_random(&random) % 301;
		int32_t bins = 1 + (int32_t)(corpus_random(&random) % 40);
		int64_t max_tokens = (int64_t)(2000 + corpus_random(&random) % 40000);
		for (size_t i = 0; i < count; i++)
			tokens[i] = (int64_t)(corpus_random(&random) % 2000);
		int rc = wlb_pack_balanced(&corpus_model, tokens, count, bins, max_tokens, first, NULL);
		assert_int_equal(wlb_balancer_pack(balancer, tokens, count, bins, max_tokens, later, NULL),
		                 rc < 0 ? 1 : 0);
		if (rc == 0)
			assert_memory_equal(first, later, count * sizeof(*first));
	}
	wlb_balancer_free(balancer);
}

static void deals_nothing(void **state)
{
	(void)state;
	assert_int_equal(wlb_pack_balanced(&corpus_model, NULL, 0, 3, 10, NULL, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(comes_near_the_optimum),
		cmocka_unit_test(exchanges_what_longest_first_puts_wrong),
		cmocka_unit_test(gives_the_same_for_the_same),
		cmocka_unit_test(refuses_what_fits_nowhere),
		cmocka_unit_test(sums_no_tokens_beyond_what_64_bits_hold),
		cmocka_unit_test(takes_work_from_a_function),
		cmocka_unit_test(tells_what_does_not_fit_from_an_error),
		cmocka_unit_test(refuses_work_that_is_none),
		cmocka_unit_test(deals_every_step_as_the_first),
		cmocka_unit_test(deals_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

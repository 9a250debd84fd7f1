/* Seconds of kernels: tiles counted against brute force, curves met at their points and between them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/bench/pack/corpus.h"

enum { LENGTHS = 4 };
static const double lengths[LENGTHS] = {128, 256, 1024, 4096};
static const double unread = -1.0; /* where keys are shorter than queries */

static struct wlb_kernel_time plain(int32_t q_tile, int32_t k_tile)
{
	return (struct wlb_kernel_time){
		.q_tile = q_tile, .k_tile = k_tile, .gemm_tile = 1, .attention_pair_s = 1.0, .gemm_token_s = 1.0};
}

/* Every tile of queries meets the tiles of keys from that in which is the first key that its first query sees to that
 * in which is the last that its last query sees. */
static double pairs_in_window(int64_t q_tile, int64_t k_tile, int64_t window, int64_t q, int64_t k)
{
	double pairs = 0.0;
	for (int64_t from = 0; from < q; from += q_tile) {
		int64_t last = from + q_tile < q ? from + q_tile : q, first_key = k - q + from + 1 - window;
		for (int64_t key = 0; key < k - q + last; key += k_tile)
			pairs += key + k_tile > first_key ? (double)(q_tile * k_tile) : 0.0;
	}
	return pairs;
}

static double pairs_by_hand(int64_t q_tile, int64_t k_tile, int64_t q, int64_t k)
{
	return pairs_in_window(q_tile, k_tile, k, q, k);
}

static void counts_the_tiles_that_a_causal_kernel_does(void **state)
{
	(void)state;
	uint64_t random = 1;
	for (int trial = 0; trial < 3000; trial++) {
		int32_t q_tile = 1 + (int32_t)(corpus_random(&random) % 200);
		int32_t k_tile = 1 + (int32_t)(corpus_random(&random) % 200);
		int64_t k = 1 + (int64_t)(corpus_random(&random) % 2000);
		int64_t q = 1 + (int64_t)(corpus_random(&random) % (uint64_t)k);
		struct wlb_kernel_time time = plain(q_tile, k_tile);
		assert_true(wlb_attention_seconds(&time, q, k) == pairs_by_hand(q_tile, k_tile, q, k));
	}
}

static void passes_over_the_tiles_before_a_window(void **state)
{
	(void)state;
	uint64_t random = 2;
	for (int trial = 0; trial < 3000; trial++) {
		int32_t q_tile = 1 + (int32_t)(corpus_random(&random) % 200);
		int32_t k_tile = 1 + (int32_t)(corpus_random(&random) % 200);
		int64_t k = 1 + (int64_t)(corpus_random(&random) % 2000), window = 1 + trial % 700;
		int64_t q = 1 + (int64_t)(corpus_random(&random) % (uint64_t)k);
		struct wlb_kernel_time time = plain(q_tile, k_tile);
		time.window = window;
		time.window_share = 0.25;
		assert_true(wlb_attention_seconds(&time, q, k) ==
		            0.75 * pairs_by_hand(q_tile, k_tile, q, k) +
		                    0.25 * pairs_in_window(q_tile, k_tile, window, q, k));
	}
	struct wlb_kernel_time wrong = plain(1, 1);
	wrong.window_share = 1.5;
	assert_int_equal(wlb_kernel_time_check(&wrong, NULL), -1);
}

static void counts_pairs_where_tiles_are_of_one_token(void **state)
{
	(void)state;
	struct wlb_kernel_time time = plain(1, 1);
	const int64_t longest = (int64_t)1 << 30;
	assert_true(wlb_attention_seconds(&time, 3, 5) == 3 + 4 + 5);
	assert_true(wlb_attention_seconds(&time, longest, longest) == (double)(longest / 2 * (longest + 1)));
	time.segment_s = 100.0;
	assert_true(wlb_attention_seconds(&time, 1, 1) == 101.0);
}

static void a_short_segment_costs_a_whole_tile(void **state)
{
	(void)state;
	struct wlb_kernel_time time = plain(128, 128);
	double tile = 128.0 * 128.0;
	assert_true(wlb_attention_seconds(&time, 1, 1) == tile);
	assert_true(wlb_attention_seconds(&time, 128, 128) == tile);
	assert_true(wlb_attention_seconds(&time, 129, 129) == 3 * tile);
	time.gemm_tile = 128;
	assert_true(wlb_gemm_seconds(&time, 0) == 0.0);
	assert_true(wlb_gemm_seconds(&time, 1) == 128.0);
	assert_true(wlb_gemm_seconds(&time, 129) == 256.0);
}

static void speeds_of_a_model_are_those_of_its_flops(void **state)
{
	(void)state;
	struct wlb_kernel_time time;
	wlb_kernel_time_init(&time, &corpus_model, 4, 2.0, 2.0);
	assert_int_equal(wlb_kernel_time_check(&time, NULL), 0);
	time.q_tile = time.k_tile = time.gemm_tile = 1;
	double seconds = wlb_gemm_seconds(&time, 1000) + wlb_attention_seconds(&time, 1000, 1000);
	double expected = wlb_cost_document(&corpus_model, 1000) / 32.0 / 4.0 / 2.0;
	assert_true(fabs(seconds - expected) <= 1e-12 * expected);
}

/* A kernel whose speed falls with short queries. */
static double measured(double q, double k)
{
	return pairs_by_hand(128, 128, (int64_t)q, (int64_t)k) * (1.0 + 100.0 / q + 10.0 / k);
}

static void fill_curve(double seconds[LENGTHS][LENGTHS])
{
	for (int i = 0; i < LENGTHS; i++)
		for (int j = 0; j < LENGTHS; j++)
			seconds[i][j] = lengths[j] < lengths[i] ? unread : measured(lengths[i], lengths[j]);
}

static struct wlb_kernel_time with_curves(const double *attention, const double *gemm)
{
	struct wlb_kernel_time time = plain(128, 128);
	time.attention = (struct wlb_attention_curve){lengths, LENGTHS, lengths, LENGTHS, attention};
	time.gemm = (struct wlb_gemm_curve){lengths, gemm, LENGTHS};
	return time;
}

static void a_curve_is_met_at_its_points_and_held_outside(void **state)
{
	(void)state;
	double attention[LENGTHS][LENGTHS];
	static const double gemm[LENGTHS] = {2, 3, 10, 39};
	fill_curve(attention);
	struct wlb_kernel_time time = with_curves(attention[0], gemm);
	assert_int_equal(wlb_kernel_time_check(&time, NULL), 0);
	for (int i = 0; i < LENGTHS; i++)
		for (int j = i; j < LENGTHS; j++) {
			double seconds = wlb_attention_seconds(&time, (int64_t)lengths[i], (int64_t)lengths[j]);
			assert_true(fabs(seconds - attention[i][j]) <= 1e-12 * seconds);
		}
	for (int i = 0; i < LENGTHS; i++)
		assert_true(fabs(wlb_gemm_seconds(&time, (int64_t)lengths[i]) - gemm[i]) <= 1e-12);
	assert_true(fabs(wlb_gemm_seconds(&time, 40960) - 390.0) <= 1e-9);
	assert_true(wlb_attention_seconds(&time, 1, 4096) == wlb_attention_seconds(&time, 128, 4096));
}

/* Between points the speed is between theirs; it rises with queries here, and so at each length between. */
static void a_curve_is_smooth_between_its_points(void **state)
{
	(void)state;
	double attention[LENGTHS][LENGTHS], before = INFINITY;
	static const double gemm[LENGTHS] = {2, 3, 10, 39};
	fill_curve(attention);
	struct wlb_kernel_time time = with_curves(attention[0], gemm);
	for (int64_t q = 128; q <= 4096; q += 128) {
		double each = wlb_attention_seconds(&time, q, 4096) / pairs_by_hand(128, 128, q, 4096);
		assert_true(each < before);
		assert_true(fabs(each / (1.0 + 100.0 / (double)q + 10.0 / 4096) - 1.0) < 0.1);
		before = each;
	}
}

/* Documents from their first token on: the points where keys are shorter than queries take no part. */
static void a_curve_serves_lengths_of_which_one_point_is_unread(void **state)
{
	(void)state;
	double attention[LENGTHS][LENGTHS];
	static const double gemm[LENGTHS] = {2, 3, 10, 39};
	fill_curve(attention);
	struct wlb_kernel_time time = with_curves(attention[0], gemm);
	for (int64_t q = 128; q <= 4096; q += 128) {
		double each = wlb_attention_seconds(&time, q, q) / pairs_by_hand(128, 128, q, q);
		assert_true(fabs(each / (1.0 + 110.0 / (double)q) - 1.0) < 0.1);
	}
}

static void refuses(const char *message, const struct wlb_kernel_time *time)
{
	struct wlb_error error;
	assert_int_equal(wlb_kernel_time_check(time, &error), -1);
	assert_string_equal(error.message, message);
}

static void refuses_times_that_cannot_be(void **state)
{
	(void)state;
	struct wlb_kernel_time time = plain(128, 128);
	time.k_tile = 65537;
	refuses("k_tile is 65537: it must be between 1 and 65536 tokens", &time);
	time = plain(128, 128);
	time.gemm_tile = -1;
	refuses("gemm_tile is -1: it must be between 1 and 65536 tokens", &time);
	time = plain(128, 128);
	time.segment_s = -1.0;
	refuses("segment_s is -1 s: it must be finite and not negative", &time);
	time = plain(128, 128);
	time.attention_pair_s = 0.0;
	refuses("attention_pair_s is 0 s: it must be finite and above 0", &time);
	time = plain(128, 128);
	time.gemm_token_s = INFINITY;
	refuses("gemm_token_s is inf s: it must be finite and above 0", &time);
}

static void refuses_curves_that_cannot_be(void **state)
{
	(void)state;
	double attention[LENGTHS][LENGTHS];
	double gemm[LENGTHS] = {2, 3, 10, 0};
	static const double falling[] = {128, 256, 200};
	fill_curve(attention);
	struct wlb_kernel_time time = with_curves(attention[0], gemm);
	refuses("matrix product curve, tokens 4096: seconds is 0 s: it must be finite and above 0", &time);
	time.gemm.count = 0;
	attention[1][2] = NAN;
	refuses("attention curve, q_tokens 256, k_tokens 1024: seconds is nan s: it must be finite and above 0", &time);
	time.attention.k_count = 3;
	refuses("the longest keys of the attention curve are 1024, its longest queries 4096: keys must be no shorter",
	        &time);
	time.attention.k_count = 0;
	refuses("the attention curve has no key lengths: it needs at least one", &time);
	time.attention = (struct wlb_attention_curve){falling, 3, lengths, LENGTHS, attention[0]};
	refuses("q_tokens of point 2 is 200: it must be 1 to 2^30 and above the one before", &time);
	time.attention = (struct wlb_attention_curve){0};
	time.gemm = (struct wlb_gemm_curve){(const double[]){0.5}, gemm, 1};
	refuses("tokens of point 0 is 0.5: it must be 1 to 2^30 and above the one before", &time);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_the_tiles_that_a_causal_kernel_does),
		cmocka_unit_test(passes_over_the_tiles_before_a_window),
		cmocka_unit_test(counts_pairs_where_tiles_are_of_one_token),
		cmocka_unit_test(a_short_segment_costs_a_whole_tile),
		cmocka_unit_test(speeds_of_a_model_are_those_of_its_flops),
		cmocka_unit_test(a_curve_is_met_at_its_points_and_held_outside),
		cmocka_unit_test(a_curve_is_smooth_between_its_points),
		cmocka_unit_test(a_curve_serves_lengths_of_which_one_point_is_unread),
		cmocka_unit_test(refuses_times_that_cannot_be),
		cmocka_unit_test(refuses_curves_that_cannot_be),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

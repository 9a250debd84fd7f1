/* Clocks of ranks are aligned by collectives, and show who comes late. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/verdict/run.h"

enum { SAMPLES = 200 };

/* When the clock of node 2, of ranks 4 and 5, is set back by an hour. */
static double set_back_at_s = INFINITY;

/* The clock of rank r is ahead by r - 3.5 seconds and drifts by r parts in a million; rank 2 comes 0.4 s late. */
static double clock_of(int32_t r, double now_s)
{
	return now_s + (r - 3.5) + 1e-6 * r * now_s - (r / 2 == 2 && now_s >= set_back_at_s ? 3600.0 : 0.0);
}

static void sample(struct run *run, int32_t group, double now_s)
{
	double entered_s[RUN_RANKS], left_s[RUN_RANKS];
	const struct wlb_verdict_group *g = &run->world->groups[group];
	for (int32_t m = 0; m < g->count; m++) {
		int32_t r = g->members[m];
		entered_s[m] = clock_of(r, now_s - 0.5 + (r == 2 ? 0.4 : 0.01 * run_random(run)));
		left_s[m] = clock_of(r, now_s + 0.001 * run_random(run));
	}
	left_s[0] = run_random(run) < 0.1 ? NAN : left_s[0];
	struct wlb_verdict_sample given = {.group = group,
	                                   .sequence = 1,
	                                   .bytes = 1.0,
	                                   .entered_s = entered_s,
	                                   .left_s = left_s,
	                                   .count = g->count};
	assert_int_equal(wlb_verdict_take_sample(run->detector, &given, NULL), 0);
}

static void take_samples(struct run *run, int first, int end)
{
	for (int i = first; i < end; i++) {
		double now_s = 10.0 * i;
		if (i % 4 == 0)
			sample(run, run_group(run, WLB_VERDICT_WORLD, 0, 7), now_s);
		sample(run, run_group(run, WLB_VERDICT_TP, 2, 3), now_s + 2.0);
		sample(run, run_group(run, WLB_VERDICT_DP, 0, 4), now_s + 4.0);
	}
}

static void clocks_are_aligned(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 2, 2);
	assert_true(isnan(wlb_verdict_clock_ahead_s(run.detector, 0)));
	take_samples(&run, 0, SAMPLES);
	double end_s = 10.0 * SAMPLES;
	double difference_s = wlb_verdict_clock_ahead_s(run.detector, 7) - wlb_verdict_clock_ahead_s(run.detector, 1);
	assert_float_equal(difference_s, clock_of(7, end_s) - clock_of(1, end_s), 0.005);
	assert_true(wlb_verdict_lateness_s(run.detector, 2) > 0.1);
	assert_float_equal(wlb_verdict_lateness_s(run.detector, 4), 0.0, 0.02);
	assert_true(isnan(wlb_verdict_lateness_s(run.detector, 99)));
	run_end(&run);
}

static void a_clock_that_is_set_back_is_followed_at_once(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 2, 2);
	set_back_at_s = 10.0 * SAMPLES;
	take_samples(&run, 0, SAMPLES);
	/* Four samples of the group of all ranks. */
	take_samples(&run, SAMPLES, SAMPLES + 16);
	double end_s = 10.0 * (SAMPLES + 16);
	for (int32_t r = 1; r < 8; r++) {
		double difference_s =
			wlb_verdict_clock_ahead_s(run.detector, r) - wlb_verdict_clock_ahead_s(run.detector, 0);
		assert_float_equal(difference_s, clock_of(r, end_s) - clock_of(0, end_s), 0.01);
		/* Rank 3 is in a group with rank 2 alone. */
		double late_s = r == 2 ? 0.23 : r == 3 ? -0.17 : 0.0;
		assert_float_equal(wlb_verdict_lateness_s(run.detector, r), late_s, 0.05);
	}
	set_back_at_s = INFINITY;
	run_end(&run);
}

static void wrong_samples_are_refused(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 2, 2);
	const double times[] = {1.0, 2.0};
	struct wlb_verdict_error error;
	struct wlb_verdict_sample given = {.group = 500, .entered_s = times, .left_s = times, .count = 2};
	assert_int_equal(wlb_verdict_take_sample(run.detector, &given, &error), -1);
	given.group = 0;
	given.count = 3;
	assert_int_equal(wlb_verdict_take_sample(run.detector, &given, &error), -1);
	given.count = 2;
	given.left_s = NULL;
	assert_int_equal(wlb_verdict_take_sample(run.detector, &given, &error), -1);
	run_end(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clocks_are_aligned),
		cmocka_unit_test(a_clock_that_is_set_back_is_followed_at_once),
		cmocka_unit_test(wrong_samples_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Healthy runs that look as if nothing moved, and states that make no sense. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/verdict/run.h"

/* Bounds follow from what was healthy, and from the predicted work. */
static void long_healthy_waits_move_the_bound(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 2, 2);
	/* 4 s of computation is healthy, so that 12 s are the bound. */
	run_seconds(&run, 4);
	for (int32_t r = 0; r < 8; r++)
		run_do(&run, r, WLB_VERDICT_COMPUTING), run.rank[r].step++;
	run_block_on_rank_0(&run);
	run_seconds(&run, 11);
	run_expect_no_verdict(&run);
	run_seconds(&run, 3);
	run_expect_one(&run, WLB_VERDICT_HANG, WLB_VERDICT_CONFIRMED);
	run_end(&run);
	run_begin(&run, 2, 1, 2, 2, 2);
	/* A step with ten times the work may take ten times as long. */
	for (int32_t r = 0; r < 8; r++)
		run_do(&run, r, WLB_VERDICT_COMPUTING), run.rank[r].step++, run.rank[r].work = 10.0;
	run_block_on_rank_0(&run);
	run_seconds(&run, 48);
	run_expect_no_verdict(&run);
	run_seconds(&run, 60);
	run_expect_one(&run, WLB_VERDICT_HANG, WLB_VERDICT_CONFIRMED);
	run_end(&run);
}

static void what_takes_long_by_nature_is_no_hang(void **state)
{
	(void)state;
	static const enum wlb_verdict_activity activities[] = {WLB_VERDICT_STARTING, WLB_VERDICT_CHECKPOINT,
	                                                       WLB_VERDICT_EVALUATION};
	for (int i = 0; i < 3; i++) {
		struct run run;
		run_begin(&run, 2, 1, 2, 2, 2);
		run_do(&run, 0, activities[i]);
		run_block_on_rank_0(&run);
		run_seconds(&run, 1790);
		run_expect_no_verdict(&run);
		run_seconds(&run, 30);
		assert_int_equal(run_expect_one(&run, WLB_VERDICT_HANG, WLB_VERDICT_CONFIRMED)->ranks[0], 0);
		run_end(&run);
	}
}

static void suspended_and_traced_jobs_are_healthy(void **state)
{
	(void)state;
	struct run run;
	for (int traced = 0; traced < 2; traced++) {
		run_begin(&run, 2, 1, 2, 2, 2);
		run_block_on_rank_0(&run);
		run_seconds(&run, 2);
		for (int32_t r = 0; r < 8; r++)
			if (traced ? r == 0 : 1)
				run.rank[r].process = traced ? WLB_VERDICT_TRACED : WLB_VERDICT_STOPPED;
		run_seconds(&run, 500);
		run_expect_no_verdict(&run);
		for (int32_t r = 0; r < 8; r++)
			run.rank[r].process = WLB_VERDICT_RUNNING;
		run_seconds(&run, 2);
		run_expect_no_verdict(&run);
		/* It is not forgotten: what hangs after it is named. */
		run_seconds(&run, 10);
		run_expect_one(&run, WLB_VERDICT_HANG, WLB_VERDICT_CONFIRMED);
		run_end(&run);
	}
}

static void clocks_that_are_set_and_silence_of_all_are_healthy(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 2, 2);
	run_block_on_rank_0(&run);
	run_seconds(&run, 2);
	run.clock_s = -3600.0;
	run_seconds(&run, 1);
	run.clock_s = 7200.0;
	run_seconds(&run, 1);
	/* No report arrives for 100 s. */
	run.now_s += 100.0;
	run_seconds(&run, 1);
	run_expect_no_verdict(&run);
	run_seconds(&run, 8);
	run_expect_one(&run, WLB_VERDICT_HANG, WLB_VERDICT_CONFIRMED);
	run_end(&run);
	/* The same while the detector is asked on. */
	run_begin(&run, 2, 1, 2, 2, 2);
	run_block_on_rank_0(&run);
	for (int32_t r = 0; r < 8; r++)
		run.rank[r].silent = 1;
	run_seconds(&run, 100);
	run_expect_no_verdict(&run);
	for (int32_t r = 0; r < 8; r++)
		run.rank[r].silent = 0;
	run_seconds(&run, 1);
	run_expect_no_verdict(&run);
	run_end(&run);
}

/* A report that arrives a second late is no clock that was set back, and a clock that was set back by an hour does not
 * stop the job's time for an hour: in both a hang is suspected after as many seconds as passed. */
static void the_jobs_time_is_neither_lost_nor_made_by_clocks_that_go_back(void **state)
{
	(void)state;
	for (int set = 0; set < 2; set++) {
		struct run run;
		run_begin(&run, 2, 1, 2, 2, 2);
		run_block_on_rank_0(&run);
		for (int i = 0; i < 4; i++) {
			run.clock_s = set ? -3600.0 * (i / 2) : i % 2 == 0 ? -1.9 : 0.0;
			run_seconds(&run, 1);
			run_expect_no_verdict(&run);
		}
		run_seconds(&run, 2);
		run_expect_one(&run, WLB_VERDICT_HANG, WLB_VERDICT_SUSPECTED);
		run_seconds(&run, 6);
		run_expect_one(&run, WLB_VERDICT_HANG, WLB_VERDICT_CONFIRMED);
		run_end(&run);
	}
}

static void absurd_states_are_refused_or_change_nothing(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 2, 2);
	const struct wlb_verdict_call foreign = {5000, 1, 1}, backwards = {0, 1, 2};
	const struct wlb_verdict_state good = {.rank = 0,
	                                       .report = UINT64_MAX,
	                                       .arrived_s = run.now_s,
	                                       .group = -1,
	                                       .activity = WLB_VERDICT_COMPUTING,
	                                       .step = 10};
	struct wlb_verdict_state bad[12];
	for (int i = 0; i < 12; i++)
		bad[i] = good;
	bad[0].rank = -1;
	bad[1].rank = 8;
	bad[2].arrived_s = NAN;
	bad[3].activity_s = -1.0;
	bad[4].activity_s = INFINITY;
	bad[5].work = NAN;
	bad[6].activity = (enum wlb_verdict_activity)77;
	bad[7].step = -2;
	bad[8].group = 3; /* of ranks 6 and 7 */
	bad[9].calls = &foreign;
	bad[9].call_count = 1;
	bad[10].calls = &backwards;
	bad[10].call_count = 1;
	bad[11].call_count = 3;
	for (int i = 0; i < 12; i++) {
		struct wlb_verdict_error error = {""};
		assert_int_equal(wlb_verdict_take_state(run.detector, &bad[i], &error), -1);
		assert_true(strlen(error.message) > 0);
	}
	/* A late report of an earlier time changes nothing: rank 0 still hangs. */
	run_block_on_rank_0(&run);
	run_seconds(&run, 8);
	struct wlb_verdict_state late = good;
	late.report = 1;
	late.step = 3;
	assert_int_equal(wlb_verdict_take_state(run.detector, &late, NULL), 0);
	run_seconds(&run, 4);
	run_expect_one(&run, WLB_VERDICT_HANG, WLB_VERDICT_CONFIRMED);
	run_end(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(long_healthy_waits_move_the_bound),
		cmocka_unit_test(what_takes_long_by_nature_is_no_hang),
		cmocka_unit_test(suspended_and_traced_jobs_are_healthy),
		cmocka_unit_test(clocks_that_are_set_and_silence_of_all_are_healthy),
		cmocka_unit_test(the_jobs_time_is_neither_lost_nor_made_by_clocks_that_go_back),
		cmocka_unit_test(absurd_states_are_refused_or_change_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

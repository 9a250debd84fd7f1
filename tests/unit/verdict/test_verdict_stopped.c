/* A rank whose process is stopped by a signal while others run is named, whatever it was doing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/verdict/run.h"

enum { SUSPECTED_WITHIN_S = 5, CONFIRMED_WITHIN_S = 8 };

/* Seconds pass in which all ranks but the first one go on. */
static void others_go_on(struct run *run, int seconds)
{
	for (int i = 0; i < seconds; i++) {
		for (int32_t r = 1; r < run->world->ranks; r++)
			run_do(run, r, WLB_VERDICT_COMPUTING), run->rank[r].step++;
		run_seconds(run, 1);
	}
}

static void it_is_named_in_every_activity(void **state)
{
	(void)state;
	static const enum wlb_verdict_activity activities[] = {WLB_VERDICT_STARTING,   WLB_VERDICT_COMPUTING,
	                                                       WLB_VERDICT_LOADING,    WLB_VERDICT_CALLING,
	                                                       WLB_VERDICT_CHECKPOINT, WLB_VERDICT_EVALUATION};
	for (size_t i = 0; i < sizeof(activities) / sizeof(activities[0]); i++)
		for (int waited_for = 0; waited_for < 2; waited_for++) {
			struct run run;
			run_begin(&run, 2, 1, 2, 2, 2);
			if (waited_for)
				run_block_on_rank_0(&run);
			run_do(&run, 0, activities[i]);
			if (activities[i] == WLB_VERDICT_CALLING)
				run_call(&run, 0, run_group(&run, WLB_VERDICT_TP, 0, 1));
			run.rank[0].process = WLB_VERDICT_STOPPED;
			void (*pass)(struct run * run, int seconds) = waited_for ? run_seconds : others_go_on;
			pass(&run, 2);
			run_expect_no_verdict(&run);
			pass(&run, SUSPECTED_WITHIN_S - 2);
			uint64_t id = run_expect_one(&run, WLB_VERDICT_HANG, WLB_VERDICT_SUSPECTED)->id;
			pass(&run, CONFIRMED_WITHIN_S - SUSPECTED_WITHIN_S);
			const struct wlb_verdict *verdict =
				run_expect_one(&run, WLB_VERDICT_HANG, WLB_VERDICT_CONFIRMED);
			assert_int_equal(verdict->id, id);
			assert_int_equal(verdict->rank_count, 1);
			assert_int_equal(verdict->ranks[0], 0);
			assert_non_null(strstr(verdict->evidence, "has been stopped by a signal for"));
			/* A signal continues it. */
			run.rank[0].process = WLB_VERDICT_RUNNING;
			run_do(&run, 0, WLB_VERDICT_COMPUTING);
			if (activities[i] == WLB_VERDICT_CALLING)
				run_do(&run, 1, WLB_VERDICT_COMPUTING);
			pass(&run, 1);
			assert_int_equal(run_expect_one(&run, WLB_VERDICT_HANG, WLB_VERDICT_OVER)->id, id);
			run_end(&run);
		}
}

/* scontrol suspend, of which the reports of some ranks are lost: nothing tells that any rank runs. */
static void it_is_not_named_where_no_other_is_seen_to_run(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 2, 2);
	for (int32_t r = 0; r < 7; r++)
		run.rank[r].process = WLB_VERDICT_STOPPED;
	run_seconds(&run, 1);
	run.rank[7].silent = 1;
	run_seconds(&run, 9);
	run_expect_no_verdict(&run);
	/* It runs after all. */
	run.rank[7].silent = 0;
	run_seconds(&run, 1);
	assert_int_equal(run.count, 7);
	run_end(&run);
	/* The job is continued, and the first reports of rank 3 after that are lost. */
	run_begin(&run, 2, 1, 2, 2, 2);
	for (int32_t r = 0; r < 4; r++)
		run.rank[r].process = WLB_VERDICT_STOPPED;
	run_seconds(&run, 2);
	for (int32_t r = 4; r < 8; r++)
		run.rank[r].process = WLB_VERDICT_STOPPED;
	run_seconds(&run, 100);
	for (int32_t r = 0; r < 8; r++)
		run.rank[r].process = WLB_VERDICT_RUNNING;
	run.rank[3].silent = 1;
	others_go_on(&run, 2);
	run_expect_no_verdict(&run);
	run_end(&run);
}

static void it_may_be_stopped_before_its_first_step_and_after_its_last(void **state)
{
	(void)state;
	struct run run;
	for (int ended = 0; ended < 2; ended++) {
		run_begin(&run, 2, 1, 2, 2, 2);
		run_do(&run, 0, ended ? WLB_VERDICT_ENDED : WLB_VERDICT_STARTING);
		run.rank[0].process = WLB_VERDICT_STOPPED;
		run.rank[0].step = ended ? 20 : -1;
		others_go_on(&run, 100);
		run_expect_no_verdict(&run);
		/* Start-up too has a bound: patience_s. */
		others_go_on(&run, 1800);
		if (!ended)
			run_expect_one(&run, WLB_VERDICT_HANG, WLB_VERDICT_CONFIRMED);
		else
			run_expect_no_verdict(&run);
		run_end(&run);
	}
}

/* A process that is stopped half of the time, and whenever it is looked at, proceeds slowly. */
static void it_is_not_named_while_it_proceeds(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 2, 2);
	run.rank[0].process = WLB_VERDICT_STOPPED;
	for (int i = 0; i < 30; i++) {
		run_do(&run, 0, WLB_VERDICT_COMPUTING);
		run.rank[0].step++;
		others_go_on(&run, 1);
		run_expect_no_verdict(&run);
	}
	/* Then for good. */
	others_go_on(&run, CONFIRMED_WITHIN_S);
	assert_int_equal(run_expect_one(&run, WLB_VERDICT_HANG, WLB_VERDICT_CONFIRMED)->ranks[0], 0);
	run_end(&run);
}

/* Rank 0 is in a debugger for as long as its reporter says so: then its node is lost. */
static void a_debugger_stops_the_time_while_it_is_reported(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 2, 2);
	run_block_on_rank_0(&run);
	run.rank[0].process = WLB_VERDICT_TRACED;
	run_seconds(&run, 100);
	run_expect_no_verdict(&run);
	run.rank[0].silent = run.rank[1].silent = 1;
	run_seconds(&run, 16);
	assert_int_equal(run_expect_one(&run, WLB_VERDICT_CRASH, WLB_VERDICT_CONFIRMED)->node, 0);
	run_end(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_named_in_every_activity),
		cmocka_unit_test(it_is_not_named_where_no_other_is_seen_to_run),
		cmocka_unit_test(it_may_be_stopped_before_its_first_step_and_after_its_last),
		cmocka_unit_test(it_is_not_named_while_it_proceeds),
		cmocka_unit_test(a_debugger_stops_the_time_while_it_is_reported),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

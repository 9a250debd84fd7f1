/* How long calls may take, as calls that have ended teach it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/verdict/run.h"

/* All ranks end a step of so many seconds, of which one call took all but the first. */
static void end_step(struct run *run, double seconds)
{
	struct wlb_verdict_transfer transfer = {
		.group = run_group(run, WLB_VERDICT_DP, 0, 7), .calls = 1, .bytes = 1e6, .transfer_s = seconds - 1.0};
	for (int32_t r = 0; r < run->world->ranks; r++) {
		struct wlb_verdict_step step = {.rank = r,
		                                .step = run->step,
		                                .seconds = seconds,
		                                .computed_s = 1.0,
		                                .work = 1.0,
		                                .transfers = &transfer,
		                                .transfer_count = 1};
		run_do(run, r, WLB_VERDICT_COMPUTING);
		run->rank[r].step++;
		assert_int_equal(wlb_verdict_take_step(run->detector, &step, NULL), 0);
	}
	run->step++;
}

static void call_all(struct run *run)
{
	for (int32_t r = 0; r < run->world->ranks; r++)
		run_call(run, r, run_group(run, WLB_VERDICT_DP, 0, 7));
}

/* The step in which ranks hung is reported when they go on, and the verdict is over then. */
static void what_a_standstill_took_lengthens_no_bound(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 1, 1, 1, 8, 2);
	for (int i = 0; i < 12; i++) {
		end_step(&run, 1.0);
		run_seconds(&run, 1);
	}
	for (int times = 0; times < 3; times++) {
		call_all(&run);
		run_seconds(&run, 4);
		run_expect_no_verdict(&run);
		run_seconds(&run, 3);
		run_expect_one(&run, WLB_VERDICT_HANG_COMMUNICATION, WLB_VERDICT_SUSPECTED);
		run_seconds(&run, 5);
		run_expect_one(&run, WLB_VERDICT_HANG_COMMUNICATION, WLB_VERDICT_CONFIRMED);
		for (int32_t r = 0; r < run.world->ranks; r++)
			run_do(&run, r, WLB_VERDICT_COMPUTING);
		run_seconds(&run, 1);
		run_expect_one(&run, WLB_VERDICT_HANG_COMMUNICATION, WLB_VERDICT_OVER);
		end_step(&run, 14.0);
		run_seconds(&run, 1);
	}
	/* A call that took long, and no hang, does. */
	run_seconds(&run, 1);
	end_step(&run, 6.0);
	run_seconds(&run, 6);
	end_step(&run, 6.0);
	call_all(&run);
	run_seconds(&run, 14);
	run_expect_no_verdict(&run);
	run_seconds(&run, 3);
	run_expect_one(&run, WLB_VERDICT_HANG_COMMUNICATION, WLB_VERDICT_CONFIRMED);
	run_end(&run);
}

/* Another detector for the run, which confirms hangs after so many seconds; ranks are in their fifth step for it. */
static void confirm_after(struct run *run, double confirm_s)
{
	struct wlb_verdict_options options;
	wlb_verdict_options_init(&options);
	options.confirm_s = confirm_s;
	wlb_verdict_free(run->detector);
	run->detector = wlb_verdict_new(run->world, &options, NULL);
	assert_non_null(run->detector);
	for (int i = 0; i < 4; i++) {
		run_seconds(run, 1);
		for (int32_t r = 0; r < run->world->ranks; r++)
			run->rank[r].step++;
	}
}

/* Ends the call of all ranks, and computes for three seconds in the next step. */
static void end_calls(struct run *run)
{
	for (int32_t r = 0; r < run->world->ranks; r++) {
		run_do(run, r, WLB_VERDICT_COMPUTING);
		run->rank[r].step++;
	}
	run_seconds(run, 3);
}

/* Nobody reports steps. Two calls of 12 s are suspected, and by their ends teach the bound of the calls after them, for
 * which three times as long is healthy, also where most calls of a step are short. */
static void calls_that_end_teach_how_long_calls_may_take(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 1, 1, 1, 8, 2);
	confirm_after(&run, 20.0);
	for (int i = 0; i < 12; i++) {
		for (int brief = 0; brief < 99; brief++)
			call_all(&run);
		call_all(&run);
		run_seconds(&run, 12);
		if (i < 2)
			run_expect_one(&run, WLB_VERDICT_HANG_COMMUNICATION, WLB_VERDICT_SUSPECTED);
		else
			run_expect_no_verdict(&run);
		end_calls(&run);
	}
	call_all(&run);
	run_seconds(&run, 34);
	run_expect_no_verdict(&run);
	run_seconds(&run, 5);
	run_expect_one(&run, WLB_VERDICT_HANG_COMMUNICATION, WLB_VERDICT_CONFIRMED);
	run_end(&run);
}

/* The network fails for seven seconds, in which calls of two groups take long. None takes as long later. */
static void one_long_call_teaches_no_bound(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 1, 4, 2);
	for (int i = 0; i < 30; i++) {
		for (int32_t r = 0; r < run.world->ranks; r++)
			run_call(&run, r, run_group(&run, WLB_VERDICT_DP, r % 2, r % 2 + 2));
		run_seconds(&run, i == 5 ? 7 : 1);
		end_calls(&run);
	}
	for (int32_t r = 0; r < run.world->ranks; r++)
		run_call(&run, r, run_group(&run, WLB_VERDICT_WORLD, 0, 7));
	run_seconds(&run, 10);
	run_expect_one(&run, WLB_VERDICT_HANG_COMMUNICATION, WLB_VERDICT_CONFIRMED);
	run_end(&run);
}

/* A signal stops a member in the call for some seconds: how long the call took then is not healthy. */
static void a_call_in_which_a_member_was_stopped_teaches_no_bound(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 1, 1, 1, 8, 2);
	call_all(&run);
	run_seconds(&run, 1);
	run.rank[2].process = WLB_VERDICT_STOPPED;
	run_seconds(&run, 4);
	run.rank[2].process = WLB_VERDICT_RUNNING;
	run_seconds(&run, 1);
	end_calls(&run);
	call_all(&run);
	run_seconds(&run, 10);
	run_expect_one(&run, WLB_VERDICT_HANG_COMMUNICATION, WLB_VERDICT_CONFIRMED);
	run_end(&run);
}

/* The reports of a node do not arrive for some time, in which the others go on: its last one shows a call that has
 * ended long before. */
static void a_call_during_which_reports_were_lost_teaches_no_bound(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 1, 1, 1, 8, 2);
	call_all(&run);
	run_seconds(&run, 1);
	run.rank[0].silent = run.rank[1].silent = 1;
	for (int i = 0; i < 20; i++) {
		end_calls(&run);
		call_all(&run);
		run_seconds(&run, 1);
	}
	run.rank[0].silent = run.rank[1].silent = 0;
	end_calls(&run);
	call_all(&run);
	run_seconds(&run, 10);
	run_expect_one(&run, WLB_VERDICT_HANG_COMMUNICATION, WLB_VERDICT_CONFIRMED);
	run_end(&run);
}

/* A new detector watches from the first step on: libraries connect in their first calls, and what the last of the first
 * steps took is healthy later. */
static void calls_of_the_first_steps_may_take_long(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 1, 1, 1, 8, 2);
	wlb_verdict_free(run.detector);
	run.detector = wlb_verdict_new(run.world, NULL, NULL);
	for (int32_t r = 0; r < run.world->ranks; r++)
		run.rank[r].step = 0;
	for (int i = 0; i < 12; i++) {
		call_all(&run);
		for (int second = 0; second < (i == 0 ? 1000 : 12); second++) {
			run_seconds(&run, 1);
			run_expect_no_verdict(&run);
		}
		end_calls(&run);
	}
	run_end(&run);
	/* It is a hang after half an hour. */
	run_begin(&run, 1, 1, 1, 8, 2);
	wlb_verdict_free(run.detector);
	run.detector = wlb_verdict_new(run.world, NULL, NULL);
	call_all(&run);
	run_seconds(&run, 1790);
	run_expect_no_verdict(&run);
	run_seconds(&run, 15);
	run_expect_one(&run, WLB_VERDICT_HANG_COMMUNICATION, WLB_VERDICT_CONFIRMED);
	run_end(&run);
}

/* The clock of ranks jumps by half a minute in a step of a second. */
static void a_length_that_cannot_be_teaches_no_bound(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 1, 1, 1, 8, 2);
	for (int i = 0; i < 60; i++) {
		end_step(&run, i == 50 ? 31.0 : 1.0);
		run_seconds(&run, 1);
	}
	call_all(&run);
	run_seconds(&run, 10);
	run_expect_one(&run, WLB_VERDICT_HANG_COMMUNICATION, WLB_VERDICT_CONFIRMED);
	run_end(&run);
}

/* Four steps are reported at once, in the last of which a call took 3 s. */
static void steps_that_are_reported_at_once_teach_their_bound(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 1, 1, 1, 8, 2);
	for (int i = 0; i < 3; i++) {
		run_seconds(&run, 16);
		for (int step = 0; step < 4; step++)
			end_step(&run, step < 3 ? 1.0 : 4.0);
	}
	call_all(&run);
	run_seconds(&run, 8);
	run_expect_no_verdict(&run);
	run_end(&run);
}

/* Ranks that wait in call 2 are started anew, from one judgement to the next, and wait in call 1. How long call 2 took
 * until then is not known, and teaches no bound. */
static void calls_that_are_numbered_anew_are_others(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 1, 1, 1, 8, 2);
	call_all(&run);
	call_all(&run);
	run_seconds(&run, 4);
	memset(run.entered, 0, sizeof(run.entered));
	memset(run.left, 0, sizeof(run.left));
	call_all(&run);
	memset(run.left, 0, sizeof(run.left));
	run_seconds(&run, 7);
	run_expect_one(&run, WLB_VERDICT_HANG_COMMUNICATION, WLB_VERDICT_SUSPECTED);
	run_seconds(&run, 4);
	run_expect_one(&run, WLB_VERDICT_HANG_COMMUNICATION, WLB_VERDICT_CONFIRMED);
	run_end(&run);
}

/* The same call number again, after some time in which nobody was in a call of the group. */
static void a_call_of_the_same_number_begins_anew(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 1, 1, 1, 8, 2);
	for (int times = 0; times < 4; times++) {
		call_all(&run);
		run_seconds(&run, 2);
		run_expect_no_verdict(&run);
		end_calls(&run);
		memset(run.entered, 0, sizeof(run.entered));
		memset(run.left, 0, sizeof(run.left));
	}
	run_end(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_standstill_took_lengthens_no_bound),
		cmocka_unit_test(calls_that_end_teach_how_long_calls_may_take),
		cmocka_unit_test(one_long_call_teaches_no_bound),
		cmocka_unit_test(a_call_in_which_a_member_was_stopped_teaches_no_bound),
		cmocka_unit_test(a_call_during_which_reports_were_lost_teaches_no_bound),
		cmocka_unit_test(calls_of_the_first_steps_may_take_long),
		cmocka_unit_test(a_length_that_cannot_be_teaches_no_bound),
		cmocka_unit_test(steps_that_are_reported_at_once_teach_their_bound),
		cmocka_unit_test(calls_that_are_numbered_anew_are_others),
		cmocka_unit_test(a_call_of_the_same_number_begins_anew),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

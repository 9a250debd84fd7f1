/* How long nothing has moved in an attempt, and whether that is long. */
#include "coordinator/wlbd/detection/standstill.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/rank_trace.h"
#include "coordinator/wlbd/budget.h"

enum { UID = 7, LIMIT_BYTES = 1 << 20 };

struct job {
	struct wlbd_budget *budget;
	struct wlbd_activities activities;
	struct wlbd_standstill still;
	uint64_t steps;
	int64_t now_ms;
};

static void open_job(struct job *job)
{
	const struct wlbd_budget_limits most = {.user_bytes = LIMIT_BYTES, .all_bytes = 2 * LIMIT_BYTES};
	*job = (struct job){.budget = wlbd_budget_new(&most), .now_ms = 1000};
	job->activities = (struct wlbd_activities){.budget = job->budget, .uid = UID};
}

static void close_job(struct job *job)
{
	wlbd_activities_free(&job->activities);
	wlbd_budget_free(job->budget);
}

/* Lets seconds pass. Returns how long nothing has moved then. */
static double wait_s(struct job *job, int seconds)
{
	const struct wlbd_progress progress = {.steps = job->steps, .activities = &job->activities};
	double stood_s = wlbd_standstill_take(&job->still, &progress, job->now_ms);
	for (int i = 0; i < seconds; i++) {
		job->now_ms += 1000;
		stood_s = wlbd_standstill_take(&job->still, &progress, job->now_ms);
	}
	return stood_s;
}

static bool is_long(const struct job *job)
{
	return wlbd_standstill_is_long(&job->still, 10, job->now_ms);
}

static void make_steps(struct job *job, int count, int seconds)
{
	for (int i = 0; i < count; i++) {
		job->steps++;
		wait_s(job, seconds);
	}
}

static void test_a_program_that_tells_nothing(void **state)
{
	struct job job;
	(void)state;
	open_job(&job);
	assert_true(wait_s(&job, 5000) == 5000);
	assert_false(is_long(&job));
	close_job(&job);
}

static void test_steps_that_stop(void **state)
{
	struct job job;
	(void)state;
	open_job(&job);
	wait_s(&job, 300); /* it starts */
	make_steps(&job, 3, 1);
	assert_true(wait_s(&job, 9) == 10);
	assert_false(is_long(&job));
	wait_s(&job, 1);
	assert_true(is_long(&job));
	job.steps++;
	assert_true(wait_s(&job, 0) == 0);
	assert_false(is_long(&job));
	close_job(&job);
}

/* A pause that was healthy once is so again, and three times as long. */
static void test_long_pauses_are_learnt(void **state)
{
	struct job job;
	(void)state;
	open_job(&job);
	make_steps(&job, 5, 8);
	wait_s(&job, 16);
	assert_false(is_long(&job)); /* three times eight seconds */
	wait_s(&job, 2);
	assert_true(is_long(&job));
	close_job(&job);
}

static void report(struct job *job, int rank, int kind, int64_t entered, bool is_traced)
{
	const struct wlbd_activity activity = {
		.rank = rank, .step = 7, .kind = kind, .is_traced = is_traced, .group_count = 1};
	const struct wlbd_activity_group group = {"dp", 2, entered, entered};
	assert_int_equal(wlbd_activities_keep(&job->activities, &activity, &group, "n", job->now_ms), 0);
}

static void test_calls_of_ranks_count(void **state)
{
	struct job job;
	(void)state;
	open_job(&job);
	for (int64_t call = 1; call <= 5; call++) {
		report(&job, 0, WLB_ACTIVITY_COMPUTING, call, false);
		report(&job, 1, WLB_ACTIVITY_COMPUTING, 3, false);
		wait_s(&job, 1);
	}
	wait_s(&job, 20);
	assert_true(is_long(&job));
	report(&job, 1, WLB_ACTIVITY_LOADING, 3, false);
	assert_true(wait_s(&job, 0) == 0);
	close_job(&job);
}

static void test_ranks_that_are_aside_have_half_an_hour(void **state)
{
	static const struct {
		int kind;
		bool is_traced;
	} aside[] = {{WLB_ACTIVITY_SAVING, false},
	             {WLB_ACTIVITY_EVALUATING, false},
	             {WLB_ACTIVITY_STARTING, false},
	             {WLB_ACTIVITY_COMPUTING, true}};
	(void)state;
	for (size_t i = 0; i < sizeof(aside) / sizeof(aside[0]); i++) {
		struct job job;
		open_job(&job);
		make_steps(&job, 5, 1);
		report(&job, 3, aside[i].kind, 1, aside[i].is_traced);
		wait_s(&job, 1800);
		assert_false(is_long(&job));
		wait_s(&job, 1);
		assert_true(is_long(&job));
		close_job(&job);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_program_that_tells_nothing),
		cmocka_unit_test(test_steps_that_stop),
		cmocka_unit_test(test_long_pauses_are_learnt),
		cmocka_unit_test(test_calls_of_ranks_count),
		cmocka_unit_test(test_ranks_that_are_aside_have_half_an_hour),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

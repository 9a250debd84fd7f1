/* The calls that some members of a communicator have entered, and others not. */
#include "coordinator/wlbd/detection/open_calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/rank_trace.h"
#include "coordinator/wlbd/budget.h"

enum { UID = 7, LIMIT_BYTES = 1 << 24, MOST_RANKS = 64 };

static char *const node_names[] = {"a1", "a2"};

struct job {
	struct wlbd_budget *budget;
	struct wlbd_activities activities;
	struct wlb_layout layout;
	int ranks;
	int node_of[MOST_RANKS];
	struct wlbd_open_call calls[WLBD_OPEN_CALLS_MAX];
	int count;
};

static void open_job(struct job *job, int tp, int dp)
{
	const struct wlbd_budget_limits most = {.user_bytes = LIMIT_BYTES, .all_bytes = 2 * LIMIT_BYTES};
	*job = (struct job){
		.budget = wlbd_budget_new(&most), .layout = {.tp = tp, .cp = 1, .pp = 1, .dp = dp}, .ranks = tp * dp};
	job->activities = (struct wlbd_activities){.budget = job->budget, .uid = UID};
	for (int rank = 0; rank < job->ranks; rank++)
		job->node_of[rank] = 2 * rank / job->ranks;
}

static void close_job(struct job *job)
{
	wlbd_activities_free(&job->activities);
	wlbd_budget_free(job->budget);
}

/* The rank has entered and left these calls of tp and dp; `in` is the group in whose newest call it is, -1: in none. */
static void report(struct job *job, int rank, int64_t tp, int64_t dp, int in)
{
	const struct wlbd_activity activity = {
		.rank = rank,
		.kind = WLB_ACTIVITY_COMPUTING,
		.is_in_call = in >= 0,
		.call = {.kind = WLB_COMM_ALL_REDUCE, .group = in, .seq = in == 0 ? tp : dp},
		.group_count = 2};
	const struct wlbd_activity_group groups[] = {{"tp", job->layout.tp, tp, tp - (in == 0)},
	                                             {"dp", job->layout.dp, dp, dp - (in == 1)}};
	assert_int_equal(wlbd_activities_keep(&job->activities, &activity, groups, "n", 1000), 0);
}

static void find(struct job *job)
{
	struct wlbd_world world;
	const struct wlbd_attempt_ranks ranks = {.layout = &job->layout,
	                                         .count = job->ranks,
	                                         .node_of = job->node_of,
	                                         .nodes = 2,
	                                         .node_names = node_names,
	                                         .activities = &job->activities};
	assert_int_equal(wlbd_world_make(&ranks, &world), 0);
	job->count = wlbd_open_calls_find(&world, &job->activities, job->calls);
	wlbd_world_free(&world);
}

static void test_no_call_is_open(void **state)
{
	struct job job;
	(void)state;
	open_job(&job, 2, 2);
	for (int rank = 0; rank < 4; rank++)
		report(&job, rank, 5, 3, -1);
	find(&job);
	assert_int_equal(job.count, 0);
	close_job(&job);
}

/* Rank 2 has not entered call 6 of its tp group; 0 and 1 wait in dp. */
static void test_who_is_in_a_call_and_who_is_missing(void **state)
{
	struct job job;
	(void)state;
	open_job(&job, 2, 2);
	report(&job, 0, 6, 4, 1);
	report(&job, 1, 6, 4, 1);
	report(&job, 2, 5, 3, -1);
	report(&job, 3, 6, 3, 0);
	find(&job);
	assert_int_equal(job.count, 3);
	for (int i = 0; i < 3; i++) {
		const struct wlbd_open_call *call = &job.calls[i];
		bool is_tp = call->communicator[0] == 't';
		assert_int_equal(call->sequence, is_tp ? 6 : 4);
		assert_int_equal(call->kind, WLB_COMM_ALL_REDUCE);
		assert_int_equal(call->inside.count, 1);
		assert_int_equal(call->missing.count, 1);
		assert_int_equal(call->inside.list[0], is_tp ? 3 : call->missing.list[0] - 2);
		if (is_tp)
			assert_int_equal(call->missing.list[0], 2);
	}
	close_job(&job);
}

/* All have entered a call of tp, which comes behind those of dp, and the lists are bounded. */
static void test_calls_that_members_are_missing_in_come_first(void **state)
{
	struct job job;
	(void)state;
	open_job(&job, 2, 32);
	for (int rank = 0; rank < job.ranks; rank++)
		report(&job, rank, 6, rank < 40 ? 4 : 3, rank >= 40 || rank % 2 == 0 ? -1 : 1);
	report(&job, 62, 7, 3, 0);
	report(&job, 63, 7, 3, 0);
	find(&job);
	assert_int_equal(job.count, 2);
	assert_string_equal(job.calls[0].communicator, "dp");
	assert_int_equal(job.calls[0].inside.count, 20);
	assert_int_equal(job.calls[0].inside.list[15], 31);
	assert_int_equal(job.calls[0].missing.count, 12);
	assert_string_equal(job.calls[1].communicator, "tp");
	assert_int_equal(job.calls[1].inside.count, 2);
	assert_int_equal(job.calls[1].missing.count, 0);
	close_job(&job);
}

/* Calls that are started beside computation follow each other: the one that blocks a rank is reported. */
static void test_the_call_that_blocks_is_told(void **state)
{
	struct job job;
	(void)state;
	open_job(&job, 1, 4);
	for (int rank = 0; rank < 4; rank++) {
		const struct wlbd_activity activity = {
			.rank = rank,
			.is_in_call = rank != 2,
			.call = {.kind = WLB_COMM_REDUCE_SCATTER, .group = 0, .seq = 7 + (rank == 3)},
			.group_count = 1};
		const struct wlbd_activity_group group = {"dp", 4, rank == 2 ? 6 : 9, 6};
		assert_int_equal(wlbd_activities_keep(&job.activities, &activity, &group, "n", 1000), 0);
	}
	find(&job);
	assert_int_equal(job.count, 1);
	assert_int_equal(job.calls[0].sequence, 7);
	assert_int_equal(job.calls[0].kind, WLB_COMM_REDUCE_SCATTER);
	assert_int_equal(job.calls[0].inside.count, 3);
	assert_int_equal(job.calls[0].missing.list[0], 2);
	close_job(&job);
}

static void test_the_number_of_calls_has_a_bound(void **state)
{
	struct job job;
	(void)state;
	open_job(&job, 2, 32);
	for (int rank = 0; rank < job.ranks; rank++)
		report(&job, rank, 6 + rank % 2, 4, rank % 2 == 1 ? 0 : -1);
	find(&job);
	assert_int_equal(job.count, WLBD_OPEN_CALLS_MAX);
	close_job(&job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_call_is_open),
		cmocka_unit_test(test_who_is_in_a_call_and_who_is_missing),
		cmocka_unit_test(test_calls_that_members_are_missing_in_come_first),
		cmocka_unit_test(test_the_call_that_blocks_is_told),
		cmocka_unit_test(test_the_number_of_calls_has_a_bound),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Reports of ranks become verdicts: worlds of several layouts, ranks that hang or are slow, changes of the
 * world. */
#include "coordinator/wlbd/detection/detection.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/rank_trace.h"
#include "coordinator/wlbd/budget.h"

enum { UID = 7, LIMIT_BYTES = 1 << 24, RANKS = 8, NODES = 4 };

static char *const node_names[NODES] = {"a1", "a2", "a3", "a4"};
static struct wlbd_detection_limits limits = {.hang_after_s = 10, .slow_share = 0.1};

struct job {
	struct wlbd_budget *budget;
	struct wlbd_activities activities;
	struct wlbd_detection *detection;
	struct wlb_layout layout;
	int node_of[RANKS];
	int64_t now_ms;
	int64_t step;
	int stuck;   /* a rank that stays in computation; -1: none */
	bool traced; /* it is stopped by a debugger */
	/* That rank is inside a call that its whole tp group has entered: the process of one is stopped, or was. */
	bool is_stopped, was_stopped;
	const struct wlbd_found_verdict *found;
	int count;
};

static void open_job(struct job *job)
{
	const struct wlbd_budget_limits most = {.user_bytes = LIMIT_BYTES, .all_bytes = 2 * LIMIT_BYTES};
	*job = (struct job){.budget = wlbd_budget_new(&most),
	                    .layout = {.tp = 2, .cp = 1, .pp = 2, .dp = 2},
	                    .now_ms = 1000000,
	                    .stuck = -1};
	job->activities = (struct wlbd_activities){.budget = job->budget, .uid = UID};
	job->detection = wlbd_detection_new(&job->activities);
	for (int rank = 0; rank < RANKS; rank++)
		job->node_of[rank] = NODES - 1 - rank / 2; /* names are sorted otherwise than ranks are placed */
}

/* All memory that was taken must have been given back. */
static void close_job(struct job *job)
{
	wlbd_detection_free(job->detection);
	wlbd_activities_free(&job->activities);
	assert_int_equal(wlbd_budget_take(job->budget, UID, LIMIT_BYTES), WLBD_BUDGET_TAKEN);
	wlbd_budget_free(job->budget);
}

/* In each second the ranks make ten calls of tp and data, and one step. Where one is stuck, the other rank of its tp
 * group waits for it there, and the others wait in a call of all ranks. */
static void report(struct job *job, int rank)
{
	int64_t calls = 10 * job->step;
	bool is_inside = job->is_stopped || job->was_stopped, is_stuck = rank == job->stuck;
	bool waits = job->stuck >= 0 && (is_inside || !is_stuck), in_tp = rank / 2 == job->stuck / 2;
	struct wlbd_activity activity = {
		.rank = rank,
		.step = job->step,
		.kind = WLB_ACTIVITY_COMPUTING,
		.for_s = is_stuck ? 100 : 0.1,
		.process = is_stuck && (job->traced || job->is_stopped) ? WLBD_PROCESS_STOPPED : WLBD_PROCESS_RUNNING,
		.is_traced = is_stuck && job->traced,
		.is_in_call = waits,
		.call = {.kind = WLB_COMM_ALL_REDUCE, .group = in_tp, .seq = in_tp ? calls + 1 : 4, .for_s = 1},
		.group_count = 3};
	struct wlbd_activity_group groups[] = {{"world", RANKS, 3 + (waits && !in_tp), 3},
	                                       {"tp", 2, calls + (waits && in_tp), calls},
	                                       {"data", 2, calls, calls}};
	assert_int_equal(wlbd_activities_keep(&job->activities, &activity, groups, "n", job->now_ms), 0);
}

static void run_seconds(struct job *job, int seconds)
{
	const struct wlbd_attempt_ranks ranks = {.layout = &job->layout,
	                                         .count = RANKS,
	                                         .node_of = job->node_of,
	                                         .nodes = NODES,
	                                         .node_names = node_names,
	                                         .activities = &job->activities};
	for (int second = 0; second < seconds; second++) {
		for (int rank = 0; rank < RANKS; rank++)
			report(job, rank);
		job->found = wlbd_detection_judge(job->detection, &ranks, &limits, job->now_ms, &job->count);
		job->now_ms += 1000;
		job->step += job->stuck < 0;
	}
}

static void test_a_healthy_run(void **state)
{
	struct job job;
	(void)state;
	open_job(&job);
	for (int second = 0; second < 200; second++) {
		run_seconds(&job, 1);
		assert_int_equal(job.count, 0);
	}
	close_job(&job);
}

static void test_a_rank_that_hangs(void **state)
{
	struct job job;
	(void)state;
	for (int rank = 0; rank < RANKS; rank++) {
		open_job(&job);
		run_seconds(&job, 20);
		job.stuck = rank;
		run_seconds(&job, 8);
		assert_int_equal(job.count, 1);
		assert_int_equal(job.found[0].verdict.stage, WLB_VERDICT_SUSPECTED);
		run_seconds(&job, 5);
		assert_int_equal(job.count, 1);
		assert_int_equal(job.found[0].verdict.kind, WLB_VERDICT_HANG);
		assert_int_equal(job.found[0].verdict.stage, WLB_VERDICT_CONFIRMED);
		assert_int_equal(job.found[0].verdict.rank_count, 1);
		assert_int_equal(job.found[0].verdict.ranks[0], rank);
		assert_int_equal(job.found[0].node_of[0], job.node_of[rank]);
		assert_true(job.found[0].collective[0] != '\0');
		assert_int_equal(job.found[0].number, 1);
		assert_non_null(strstr(job.found[0].verdict.evidence, node_names[job.node_of[rank]]));
		job.stuck = -1;
		run_seconds(&job, 2); /* in the second one it has begun the next step */
		assert_int_equal(job.found[0].verdict.stage, WLB_VERDICT_OVER);
		assert_true(job.found[0].is_changed);
		run_seconds(&job, 1);
		assert_int_equal(job.count, 0);
		close_job(&job);
	}
}

/* A report may be made after the process has been continued, and before it has left the call in which it was stopped.
 */
static void test_a_rank_that_was_stopped_in_a_call(void **state)
{
	struct job job;
	(void)state;
	open_job(&job);
	run_seconds(&job, 20);
	job.stuck = 3;
	job.is_stopped = true;
	run_seconds(&job, 30);
	assert_int_equal(job.count, 1);
	assert_int_equal(job.found[0].verdict.kind, WLB_VERDICT_HANG);
	job.is_stopped = false;
	job.was_stopped = true;
	run_seconds(&job, 1);
	for (int i = 0; i < job.count; i++)
		assert_int_equal(job.found[i].verdict.kind, WLB_VERDICT_HANG);
	run_seconds(&job, 20); /* but it does not leave it */
	assert_true(job.count > 0);
	job.stuck = -1;
	job.was_stopped = false;
	run_seconds(&job, 3);
	assert_int_equal(job.count, 0);
	close_job(&job);
}

static void test_a_debugger_stops_the_time(void **state)
{
	struct job job;
	(void)state;
	open_job(&job);
	run_seconds(&job, 20);
	job.stuck = 3;
	job.traced = true;
	run_seconds(&job, 60);
	assert_int_equal(job.count, 0);
	close_job(&job);
}

static void test_changes_are_told_once(void **state)
{
	struct job job;
	int told = 0;
	(void)state;
	open_job(&job);
	run_seconds(&job, 20);
	job.stuck = 1;
	for (int second = 0; second < 30; second++) {
		run_seconds(&job, 1);
		told += job.count > 0 && job.found[0].is_changed;
	}
	assert_int_equal(told, 2); /* suspected, confirmed */
	close_job(&job);
}

static void test_other_limits_end_what_was_open(void **state)
{
	struct job job;
	(void)state;
	open_job(&job);
	run_seconds(&job, 20);
	job.stuck = 1;
	run_seconds(&job, 15);
	assert_int_equal(job.count, 1);
	job.layout = (struct wlb_layout){.tp = 2, .cp = 1, .pp = 1, .dp = 4};
	run_seconds(&job, 1);
	assert_int_equal(job.found[0].verdict.stage, WLB_VERDICT_OVER);
	close_job(&job);
}

/* A rank is named on the node where it is now. */
static void test_other_nodes_of_the_ranks(void **state)
{
	struct job job;
	(void)state;
	open_job(&job);
	run_seconds(&job, 20);
	job.stuck = 0;
	run_seconds(&job, 15);
	assert_int_equal(job.count, 1);
	assert_int_equal(job.found[0].node_of[0], NODES - 1);
	for (int rank = 0; rank < RANKS; rank++)
		job.node_of[rank] = rank / 2;
	run_seconds(&job, 1);
	assert_int_equal(job.found[0].verdict.stage, WLB_VERDICT_OVER);
	job.stuck = -1;
	run_seconds(&job, 20);
	job.stuck = 0;
	run_seconds(&job, 15);
	assert_int_equal(job.count, 1);
	assert_int_equal(job.found[0].verdict.stage, WLB_VERDICT_CONFIRMED);
	assert_int_equal(job.found[0].node_of[0], 0);
	assert_non_null(strstr(job.found[0].verdict.evidence, node_names[0]));
	close_job(&job);
}

static void take_steps(struct job *job, int slow)
{
	for (int rank = 0; rank < RANKS; rank++) {
		struct wlbd_rank_step step = {.ended = {.rank = rank,
		                                        .step = job->step,
		                                        .seconds = 1.2,
		                                        .computed_s = rank == slow ? 1.2 : 1.0,
		                                        .work = 5}};
		wlbd_detection_take_step(job->detection, &step);
	}
}

static void test_a_slow_rank(void **state)
{
	struct job job;
	(void)state;
	open_job(&job);
	for (int second = 0; second < 100; second++) {
		run_seconds(&job, 1);
		take_steps(&job, second < 50 ? -1 : 5);
		if (second < 50)
			assert_int_equal(job.count, 0);
	}
	assert_int_equal(job.count, 1);
	assert_int_equal(job.found[0].verdict.kind, WLB_VERDICT_SLOW_COMPUTE);
	assert_int_equal(job.found[0].verdict.ranks[0], 5);
	close_job(&job);
}

static void test_what_makes_no_sense_is_ignored(void **state)
{
	struct job job;
	const struct wlbd_rank_step no_rank = {.ended = {.rank = RANKS, .step = 1, .seconds = 1}};
	const struct wlbd_rank_step no_group = {.ended = {.rank = 0, .step = 1, .seconds = 1},
	                                        .transfer_count = 1,
	                                        .transfers = {{"nobody's", {0, 1, 1, 1}}}};
	(void)state;
	open_job(&job);
	wlbd_detection_take_step(NULL, &no_rank);
	wlbd_detection_take_step(job.detection, &no_rank); /* before the ranks are known */
	run_seconds(&job, 5);
	wlbd_detection_take_step(job.detection, &no_rank);
	wlbd_detection_take_step(job.detection, &no_group);
	job.layout.dp = 64; /* more places than ranks */
	run_seconds(&job, 5);
	assert_int_equal(job.count, 0);
	close_job(&job);
}

static int worlds_made;

int __real_wlbd_world_make(const struct wlbd_attempt_ranks *ranks, struct wlbd_world *world);
int __wrap_wlbd_world_make(const struct wlbd_attempt_ranks *ranks, struct wlbd_world *world);

int __wrap_wlbd_world_make(const struct wlbd_attempt_ranks *ranks, struct wlbd_world *world)
{
	worlds_made++;
	return __real_wlbd_world_make(ranks, world);
}

/* Takes what the user may still hold, except for so many bytes. Returns what was taken. */
static size_t take_all_but(struct job *job, size_t left_bytes)
{
	enum { PART = 256 };
	size_t taken = 0;
	while (wlbd_budget_take(job->budget, UID, PART) == WLBD_BUDGET_TAKEN)
		taken += PART;
	wlbd_budget_give(job->budget, UID, left_bytes);
	return taken - left_bytes;
}

static void test_memory_has_a_bound(void **state)
{
	struct job job;
	(void)state;
	open_job(&job);
	size_t taken = take_all_but(&job, 8192);
	worlds_made = 0;
	run_seconds(&job, 20);
	job.stuck = 2;
	run_seconds(&job, 20);
	assert_int_equal(job.count, 0); /* nothing is watched */
	assert_int_equal(worlds_made, 0);
	wlbd_budget_give(job.budget, UID, taken);
	job.stuck = -1;
	run_seconds(&job, 40); /* it is tried again after half a minute */
	job.stuck = 2;
	run_seconds(&job, 20);
	assert_int_equal(job.count, 1);
	close_job(&job);
}

static void test_a_world_for_which_memory_did_not_suffice_is_not_made_again(void **state)
{
	enum { OF_RANKS = 20 << 10 }; /* without their communicators */
	struct job job;
	(void)state;
	open_job(&job);
	size_t taken = take_all_but(&job, OF_RANKS);
	worlds_made = 0;
	run_seconds(&job, 200);
	assert_int_equal(worlds_made, 1);
	wlbd_budget_give(job.budget, UID, taken);
	run_seconds(&job, 40);
	assert_int_equal(worlds_made, 2);
	job.stuck = 2;
	run_seconds(&job, 20);
	assert_int_equal(job.count, 1);
	close_job(&job);
}

/* `slow-by=1`, the least that on_fault allows, is watched for; why the ranks are not watched with less is reported. */
static void test_the_least_slow_by_is_watched_for(void **state)
{
	struct job job;
	(void)state;
	for (int refused = 0; refused < 2; refused++) {
		open_job(&job);
		limits.slow_share = refused ? 0.001 : 0.01;
		run_seconds(&job, 1);
		const char *refusal = wlbd_detection_refusal(job.detection, job.now_ms - 1000);
		assert_int_equal(wlbd_detection_watches(job.detection), !refused);
		if (refused)
			assert_non_null(strstr(refusal, "slow_share 0.001: must be 0.01 to 10"));
		else
			assert_null(refusal);
		close_job(&job);
	}
	limits.slow_share = 0.1;
}

/* After a restart: the steps that had ended before took up to 4 s. */
static void test_a_run_that_stands_still_from_the_first_report_on(void **state)
{
	struct job job;
	(void)state;
	for (int known = 0; known < 2; known++) {
		open_job(&job);
		limits.known_step_s = known ? 4 : 0;
		job.step = 100;
		job.stuck = 1;
		run_seconds(&job, 11);
		assert_int_equal(job.count, 0);
		run_seconds(&job, 4);
		assert_int_equal(job.count, known);
		if (known)
			assert_int_equal(job.found[0].verdict.stage, WLB_VERDICT_CONFIRMED);
		close_job(&job);
	}
	limits.known_step_s = 0;
}

/* 2,048 nodes of eight ranks, with the communicators of all parallelisms. */
static void test_a_large_run_has_memory(void **state)
{
	enum { MANY = 16384 };
	const struct wlbd_budget_limits most = {.user_bytes = WLBD_ACTIVITY_USER_BYTES,
	                                        .all_bytes = WLBD_ACTIVITY_ALL_BYTES};
	static const struct wlbd_activity_group groups[] = {
		{"world", MANY, 1, 1}, {"tp", 8, 9, 9},     {"cp", 2, 9, 9},          {"data", 256, 1, 1},
		{"pp 0>1", 2, 9, 9},   {"pp 1>2", 2, 9, 9}, {"pp_back 1>0", 2, 9, 9}, {"pp_back 2>1", 2, 9, 9}};
	struct wlbd_budget *budget = wlbd_budget_new(&most);
	struct wlbd_activities activities = {.budget = budget, .uid = UID};
	struct wlbd_detection *detection = wlbd_detection_new(&activities);
	const struct wlb_layout layout = {.tp = 8, .cp = 2, .pp = 8, .dp = 128};
	static int node_of[MANY];
	static char *names[MANY / 8];
	const struct wlbd_attempt_ranks ranks = {.layout = &layout,
	                                         .count = MANY,
	                                         .node_of = node_of,
	                                         .nodes = MANY / 8,
	                                         .node_names = names,
	                                         .activities = &activities};
	int count;
	(void)state;
	for (int rank = 0; rank < MANY; rank++) {
		const struct wlbd_activity activity = {
			.rank = rank, .step = 1, .kind = WLB_ACTIVITY_COMPUTING, .group_count = 8};
		node_of[rank] = rank / 8;
		names[rank / 8] = "n";
		assert_int_equal(wlbd_activities_keep(&activities, &activity, groups, "n", 1000), 0);
	}
	wlbd_detection_judge(detection, &ranks, &limits, 1000, &count);
	assert_null(wlbd_detection_refusal(detection, 1000));
	wlbd_detection_free(detection);
	wlbd_activities_free(&activities);
	wlbd_budget_free(budget);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_healthy_run),
		cmocka_unit_test(test_a_rank_that_hangs),
		cmocka_unit_test(test_a_rank_that_was_stopped_in_a_call),
		cmocka_unit_test(test_a_debugger_stops_the_time),
		cmocka_unit_test(test_changes_are_told_once),
		cmocka_unit_test(test_other_limits_end_what_was_open),
		cmocka_unit_test(test_other_nodes_of_the_ranks),
		cmocka_unit_test(test_a_slow_rank),
		cmocka_unit_test(test_what_makes_no_sense_is_ignored),
		cmocka_unit_test(test_memory_has_a_bound),
		cmocka_unit_test(test_a_world_for_which_memory_did_not_suffice_is_not_made_again),
		cmocka_unit_test(test_the_least_slow_by_is_watched_for),
		cmocka_unit_test(test_a_run_that_stands_still_from_the_first_report_on),
		cmocka_unit_test(test_a_large_run_has_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

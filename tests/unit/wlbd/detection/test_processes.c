/* Verdicts of processes that are stopped or dead while others run, and of launchers without a rank. */
#include "coordinator/wlbd/detection/rank_processes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { NODES = 2, HANG_AFTER_S = 8 };

struct job {
	struct wlbd_process_faults faults;
	struct wlbd_node_processes reported[NODES];
	struct wlbd_processes_node nodes[NODES];
	int count; /* nodes that report */
	int64_t now_ms;
};

static struct job new_job(void)
{
	return (struct job){
		.nodes = {{.name = "n1", .index = 0}, {.name = "n2", .index = 1}}, .count = NODES, .now_ms = 1000};
}

/* From now on the node reports the process, and so many others that run. */
static void report(struct job *job, int node, int running, const struct wlbd_faulty_process *process)
{
	struct wlbd_node_processes *processes = &job->reported[node];
	job->nodes[node].processes = processes;
	processes->running = running;
	processes->list[processes->count++] = *process;
}

static void report_nothing(struct job *job, int node)
{
	job->reported[node].count = 0;
	job->nodes[node].processes = NULL;
}

/* Lets seconds pass. Returns the verdict; NULL: there is none. */
static const struct wlbd_found_verdict *wait_s(struct job *job, int seconds)
{
	for (int i = 0; i < seconds; i++) {
		job->now_ms += 1000;
		wlbd_process_faults_judge(&job->faults, job->nodes, job->count, NODES, HANG_AFTER_S, job->now_ms);
	}
	assert_in_range(job->faults.count, 0, 1);
	return job->faults.count > 0 ? &job->faults.list[0] : NULL;
}

static void assert_verdict(const struct wlbd_found_verdict *found, enum wlb_verdict_stage stage, int rank,
                           const char *evidence)
{
	assert_non_null(found);
	assert_int_equal(found->verdict.kind, WLB_VERDICT_HANG);
	assert_int_equal(found->verdict.stage, stage);
	assert_int_equal(found->verdict.ranks[0], rank);
	assert_string_equal(found->verdict.evidence, evidence);
}

static const struct wlbd_faulty_process stopped = {.rank = 12, .pid = 345, .fault = WLBD_PROCESS_IS_STOPPED};
static const struct wlbd_faulty_process waiting = {
	.rank = 1, .pid = 7, .fault = WLBD_LAUNCHER_WAITS, .launcher = "torchrun", .for_s = 20, .nodes = 3};
static const char stopped_text[] = "process 345 of rank 12 on n2 is stopped by a signal (SIGSTOP or alike)";

static void a_stopped_process_is_named_soon_and_confirmed_after_the_bound(void **state)
{
	struct job job = new_job();
	(void)state;
	report(&job, 1, 3, &stopped);
	assert_null(wait_s(&job, 3));
	assert_verdict(wait_s(&job, 1), WLB_VERDICT_SUSPECTED, 12, stopped_text);
	assert_int_equal(job.faults.list[0].node_of[0], 1);
	assert_true(job.faults.list[0].is_changed);
	wait_s(&job, 1);
	assert_false(job.faults.list[0].is_changed);
	assert_verdict(wait_s(&job, HANG_AFTER_S - 4), WLB_VERDICT_CONFIRMED, 12, stopped_text);
	assert_true(job.faults.list[0].is_changed);
}

static void a_stop_of_a_moment_is_not_named(void **state)
{
	struct job job = new_job();
	(void)state;
	for (int i = 0; i < 5; i++) {
		report(&job, 1, 3, &stopped);
		assert_null(wait_s(&job, 3));
		report_nothing(&job, 1);
		assert_null(wait_s(&job, 1));
	}
}

static void the_verdict_is_over_when_the_process_goes_on(void **state)
{
	struct job job = new_job();
	(void)state;
	report(&job, 1, 3, &stopped);
	int64_t number = wait_s(&job, 10)->number;
	report_nothing(&job, 1);
	const struct wlbd_found_verdict *found = wait_s(&job, 1);
	assert_int_equal(found->verdict.stage, WLB_VERDICT_OVER);
	assert_true(found->is_changed);
	assert_null(wait_s(&job, 1));
	report(&job, 1, 3, &stopped);
	found = wait_s(&job, 5);
	assert_int_equal(found->verdict.stage, WLB_VERDICT_SUSPECTED);
	assert_true(found->number != number);
}

static void a_job_whose_processes_are_all_stopped_is_left(void **state)
{
	struct job job = new_job();
	(void)state;
	/* Slurm suspends one node after the other. */
	report(&job, 1, 0, &stopped);
	assert_null(wait_s(&job, 2));
	report(&job, 0, 0, &stopped);
	assert_null(wait_s(&job, 600));
	/* One node is resumed before the other. */
	report_nothing(&job, 0);
	assert_null(wait_s(&job, 2));
	report_nothing(&job, 1);
	assert_null(wait_s(&job, 5));
}

static void nodes_that_do_not_report_do_not_count_as_running(void **state)
{
	struct job job = new_job();
	(void)state;
	job.nodes[0] = job.nodes[1];
	job.count = 1;
	report(&job, 0, 0, &stopped);
	assert_null(wait_s(&job, 600));
}

static void a_launcher_that_waits_is_named_and_never_confirmed(void **state)
{
	struct job job = new_job();
	(void)state;
	report(&job, 0, 0, &waiting);
	assert_null(wait_s(&job, 4));
	job.reported[0].list[0].for_s = WLBD_LAUNCHER_WAITS_S;
	assert_verdict(
		wait_s(&job, 1), WLB_VERDICT_SUSPECTED, 1,
		"torchrun, process 7 on n1, has had no rank for 25 s: it waits for 3 nodes, and the attempt has 2");
	job.reported[0].list[0].nodes = 2;
	assert_verdict(wait_s(&job, 600), WLB_VERDICT_SUSPECTED, 1,
	               "torchrun, process 7 on n1, has had no rank for 25 s: it starts, or waits for other nodes");
}

static void many_processes_are_counted_and_some_described(void **state)
{
	struct job job = new_job();
	struct wlbd_faulty_process dead = {.fault = WLBD_PROCESS_IS_DEAD};
	(void)state;
	for (int i = 0; i < WLBD_FAULTY_MAX; i++) {
		dead.rank = dead.pid = i;
		report(&job, 0, 1, &dead);
		dead.rank = dead.pid = 100 + i;
		report(&job, 1, 1, &dead);
	}
	const struct wlbd_found_verdict *found = wait_s(&job, 5);
	assert_int_equal(found->verdict.rank_count, 2 * WLBD_FAULTY_MAX);
	assert_int_equal(found->verdict.ranks[15], 107);
	assert_non_null(strstr(found->verdict.evidence, "process 2 of rank 2 on n1 is dead, and its launcher has not "
	                                                "noticed; and 13 more"));
}

/* A launcher has started two ranks a node; a third one of n2 is none that there can be. */
static void ranks_have_the_state_of_their_processes(void **state)
{
	struct wlbd_node_processes reported[] = {
		{.running = 1, .count = 2, .list = {stopped, waiting}, .span_count = 1, .spans = {{0, 2}}},
		{.running = 2, .span_count = 2, .spans = {{2, 1}, {1000000, 1}}}};
	const struct wlbd_processes_node nodes[] = {{.name = "n1", .reported_ms = 7, .processes = &reported[0]},
	                                            {.name = "n2", .reported_ms = 9, .processes = &reported[1]},
	                                            {.name = "n3"}};
	struct wlbd_rank_processes ranks;
	(void)state;
	reported[0].list[0].rank = 3;
	wlbd_rank_processes_fill(&ranks, nodes, 3);
	assert_int_equal(ranks.count, 4);
	for (int rank = 0; rank < 4; rank++) {
		const struct wlbd_rank_process *process = wlbd_rank_processes_of(&ranks, rank);
		assert_string_equal(process->node, rank == 2 ? "n2" : "n1");
		assert_int_equal(process->reported_ms, rank == 2 ? 9 : 7);
		assert_int_equal(process->state, rank == 3 ? WLBD_PROCESS_STOPPED : WLBD_PROCESS_RUNNING);
	}
	assert_null(wlbd_rank_processes_of(&ranks, 4));
	wlbd_rank_processes_free(&ranks);
	wlbd_rank_processes_fill(&ranks, &nodes[2], 1);
	assert_null(wlbd_rank_processes_of(&ranks, 0));
	wlbd_rank_processes_free(&ranks);
	assert_null(wlbd_rank_processes_of(NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_have_the_state_of_their_processes),
		cmocka_unit_test(a_stopped_process_is_named_soon_and_confirmed_after_the_bound),
		cmocka_unit_test(a_stop_of_a_moment_is_not_named),
		cmocka_unit_test(the_verdict_is_over_when_the_process_goes_on),
		cmocka_unit_test(a_job_whose_processes_are_all_stopped_is_left),
		cmocka_unit_test(nodes_that_do_not_report_do_not_count_as_running),
		cmocka_unit_test(a_launcher_that_waits_is_named_and_never_confirmed),
		cmocka_unit_test(many_processes_are_counted_and_some_described),
	};
	return cmocka_run_group_tests_name("processes", tests, NULL, NULL);
}

/* What an attempt ended of, by what its srun has written. */
#include "coordinator/wlb/run/attempt/attempt_end.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include <cmocka.h>

/* An attempt of four tasks on n1 and n2, all nodes of its job, whose srun has ended with 137. */
static char *nodes[] = {"n1", "n2"};
static struct wlb_run run;
static struct wlb_attempt attempt;
static struct wlb_first_exit_scan scan;
static struct wlb_run_slurm_end sent;
static struct wlb_attempt_end_facts facts;

static int begin(void **state)
{
	(void)state;
	run = (struct wlb_run){.job.node_count = 2};
	attempt = (struct wlb_attempt){.nodes = nodes, .node_count = 2, .tasks_per_node = 2, .exit_code = 137};
	scan = (struct wlb_first_exit_scan){0};
	sent = (struct wlb_run_slurm_end){0};
	facts = (struct wlb_attempt_end_facts){.scan = &scan, .launch_failed_s = 1.5, .slurm_end = &sent};
	return 0;
}

static void read_lines(const char *text)
{
	wlb_first_exit_feed(&scan, text, strlen(text));
}

static void expect(int exit_code, const char *reason)
{
	wlb_attempt_end_find(&run, &attempt, &facts);
	wlb_attempt_end_explain(&attempt, &facts);
	assert_int_equal(attempt.exit_code, exit_code);
	assert_string_equal(attempt.end_reason, reason);
}

static void of_the_task_that_ended_first(void **state)
{
	(void)state;
	read_lines("srun: error: n2: task 3: Exited with exit code 7\nsrun: error: n1: tasks 0-1: Killed\n");
	expect(7, "rank 3 on n2 ended with exit code 7");
	assert_true(attempt.first_exit.known && attempt.first_exit.rank == 3);
}

static void of_nothing_where_it_succeeds(void **state)
{
	(void)state;
	attempt.exit_code = 0;
	read_lines("srun: error: n2: task 3: Exited with exit code 7\n");
	expect(0, "");
	assert_false(attempt.first_exit.known);
}

static void of_a_fence_that_timed_out(void **state)
{
	(void)state;
	read_lines(
		"slurmstepd: error:  mpi/pmix_v4: pmixp_coll_ring_reset_if_to: n2 [1]: pmixp_coll_ring.c:741: 0x7f1c: "
		"collective timeout seq=1\nsrun: error: n2: task 3: Exited with exit code 7\n");
	expect(EX_TEMPFAIL, "the Slurm step did not start: a PMIx fence was ended by PMIxTimeout on n2");
	assert_false(attempt.first_exit.known);
}

static void of_a_node_that_did_not_launch_its_tasks(void **state)
{
	(void)state;
	read_lines("srun: error: task 2 launch failed: Unspecified error\n");
	expect(137, "the Slurm step was not launched on n2: Unspecified error");
	assert_string_equal(attempt.launch_failure.node, "n2");
	assert_true(attempt.launch_failure.time_s == 1.5);
}

static void of_no_node_that_the_attempt_does_not_have(void **state)
{
	(void)state;
	read_lines("srun: error: task 9 launch failed: Unspecified error\n");
	wlb_attempt_end_find(&run, &attempt, &facts);
	assert_string_equal(attempt.launch_failure.node, "");
}

static const char no_such_option[] = "srun: unrecognized option '--frobnicate'\n";

static void of_a_refusal_of_srun(void **state)
{
	(void)state;
	read_lines(no_such_option);
	wlb_attempt_end_find(&run, &attempt, &facts);
	assert_true(attempt.is_refused);
	assert_non_null(strstr(attempt.end_reason, "--frobnicate"));
	/* Once it had a step, it was no refusal. */
	begin(NULL);
	read_lines("srun: error: n2: task 3: Exited with exit code 7\n");
	read_lines(no_such_option);
	wlb_attempt_end_find(&run, &attempt, &facts);
	assert_false(attempt.is_refused);
	/* Who has ended the attempt knows why. */
	begin(NULL);
	attempt.ended_by = WLB_ENDED_BY_ORDER;
	read_lines(no_such_option);
	wlb_attempt_end_find(&run, &attempt, &facts);
	assert_false(attempt.is_refused);
}

static const char no_such_file[] = "slurmstepd: error: execve(): /no/such: No such file or directory\n";

static void of_tasks_that_could_not_execute_the_command(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		read_lines(no_such_file);
	wlb_attempt_end_find(&run, &attempt, &facts);
	assert_false(attempt.is_refused); /* one of the four could */
	begin(NULL);
	for (int i = 0; i < 4; i++)
		read_lines(no_such_file);
	read_lines("srun: error: n1: tasks 0-1: Exited with exit code 2\n");
	wlb_attempt_end_find(&run, &attempt, &facts);
	assert_true(attempt.is_refused);
	assert_false(attempt.first_exit.known); /* which is no crash */
	/* On one node of several it may be the node. */
	begin(NULL);
	attempt.node_count = 1;
	for (int i = 0; i < 4; i++)
		read_lines(no_such_file);
	assert_false(wlb_attempt_end_is_refused(&run, &attempt, &scan));
	run.job.node_count = 1;
	assert_true(wlb_attempt_end_is_refused(&run, &attempt, &scan));
}

static void of_slurm_unless_it_has_saved(void **state)
{
	(void)state;
	read_lines("srun: First task exited 3s ago\n");
	sent = (struct wlb_run_slurm_end){.why = "srun's --wait was over", .time_s = 2.5};
	expect(137, "srun's --wait was over");
	assert_true(attempt.slurm_end.time_s == 2.5);
	begin(NULL);
	read_lines("srun: First task exited 3s ago\n");
	attempt.stopped = true;
	expect(137, "");
	assert_string_equal(attempt.slurm_end.why, "");
}

static void of_what_is_known_already(void **state)
{
	(void)state;
	strcpy(attempt.end_reason, "cancelled by Slurm");
	attempt.ended_by = WLB_ENDED_BY_CANCEL;
	read_lines("srun: error: task 2 launch failed: Unspecified error\nsrun: error: n1: task 0: Killed\n");
	read_lines(no_such_option);
	expect(137, "cancelled by Slurm");
	assert_false(attempt.first_exit.known);
	assert_string_equal(attempt.launch_failure.node, "");
}

static void a_step_that_is_not_created_is_tried_again(void **state)
{
	static const char busy[] = "srun: error: Unable to create step for job 12: Requested nodes are busy\n";
	(void)state;
	read_lines(busy);
	wlb_attempt_end_find(&run, &attempt, &facts);
	assert_true(attempt.no_step && !attempt.is_slurmctld_unavailable && !attempt.is_refused);
	begin(NULL);
	attempt.ended_by = WLB_ENDED_BY_ORDER;
	read_lines(busy);
	wlb_attempt_end_find(&run, &attempt, &facts);
	assert_false(attempt.no_step);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

/* The attempt went on without tasks 0 to 2. */
static void an_attempt_that_goes_on_succeeds_with_a_task(void **state)
{
	(void)state;
	wlb_ended_tasks_begin(&scan.ended, 4);
	read_lines("srun: error: n1: tasks 0-2: Killed\n");
	expect(0, "");
	attempt.exit_code = 137;
	attempt.srun_signal = 9;
	wlb_attempt_end_find(&run, &attempt, &facts);
	assert_int_equal(attempt.exit_code, 137);
	attempt.srun_signal = 0;
	attempt.end_reason[0] = '\0';
	read_lines("srun: error: n2: task 3: Exited with exit code 5\n");
	expect(137, "rank 0 on n1 was killed by signal 9");
	wlb_ended_tasks_free(&scan.ended);
}

static void an_error_is_put_where_one_was_found(void **state)
{
	json_t *object = json_object();
	(void)state;
	wlb_attempt_error_put(&attempt, object);
	assert_int_equal(json_object_size(object), 0);
	attempt.error =
		(struct wlb_error_line){.known = true, .text = "ValueError: x", .cause = "KeyError: 1", .rank = -1};
	wlb_attempt_error_put(&attempt, object);
	char *text = json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS);
	assert_string_equal(
		text, "{\"error\":{\"cause\":\"KeyError: 1\",\"is_consequence\":false,\"text\":\"ValueError: x\"}}");
	free(text);
	attempt.error.rank = 3;
	attempt.error.is_consequence = true;
	wlb_attempt_error_put(&attempt, object);
	const json_t *error = json_object_get(object, "error");
	assert_int_equal(json_integer_value(json_object_get(error, "rank")), 3);
	assert_true(json_is_true(json_object_get(error, "is_consequence")));
	json_decref(object);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(of_the_task_that_ended_first),
		TEST(of_nothing_where_it_succeeds),
		TEST(of_a_fence_that_timed_out),
		TEST(of_a_node_that_did_not_launch_its_tasks),
		TEST(of_no_node_that_the_attempt_does_not_have),
		TEST(of_a_refusal_of_srun),
		TEST(of_tasks_that_could_not_execute_the_command),
		TEST(of_slurm_unless_it_has_saved),
		TEST(of_what_is_known_already),
		TEST(a_step_that_is_not_created_is_tried_again),
		TEST(an_attempt_that_goes_on_succeeds_with_a_task),
		TEST(an_error_is_put_where_one_was_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

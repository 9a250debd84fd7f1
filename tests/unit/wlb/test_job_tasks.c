/* How many tasks `wlb run` starts on each node, from what Slurm says of the submission. */
#include "coordinator/wlb/run/state/job_tasks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "coordinator/wlb/run/state/journal.h"

static char dir[] = "/tmp/wlb-job-tasks-XXXXXX";
static char kept[64];

static const char *const names[] = {"SLURM_NTASKS",         "SLURM_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE",
                                    "SLURM_GPUS_ON_NODE",   "SLURM_GPUS_PER_NODE",  "SLURM_NTASKS_PER_GPU",
                                    "SLURM_NTASKS_PER_TRES"};

/* Of a submission; NULL: Slurm does not set it. */
struct environment {
	const char *ntasks, *list, *per_node, *gpus;
};

static void set(const char *name, const char *value)
{
	if (value != NULL)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

static struct wlb_run run_with(const struct environment *environment, int nodes)
{
	struct wlb_run run = {
		.job = {.job_id = 12, .submit_time = 1000, .node_count = nodes, .first_node_count = nodes}};
	snprintf(run.job.spool_dir, sizeof(run.job.spool_dir), "%s", dir);
	run.journal.fd = -1;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
	set("SLURM_NTASKS", environment->ntasks);
	set("SLURM_TASKS_PER_NODE", environment->list);
	set("SLURM_NTASKS_PER_NODE", environment->per_node);
	set("SLURM_GPUS_ON_NODE", environment->gpus);
	return run;
}

static void a_job_has_the_tasks_of_its_submission(void **state)
{
	static const struct {
		struct environment environment;
		int nodes, option, tasks_per_node;
	} cases[] = {
		{{"4", "1(x4)", NULL, "8"}, 4, 0, 1},       /* torchrun */
		{{"32", "29,1(x3)", NULL, "8"}, 4, 0, 8},   /* as Slurm fills 29 CPUs of a node */
		{{"32", "8(x4)", "8", "8"}, 4, 0, 8},       /* --ntasks-per-node=8 */
		{{NULL, "64(x4)", NULL, "8"}, 4, 0, 8},     /* no number: one for each GPU */
		{{NULL, "64(x2),32", NULL, "8"}, 3, 0, 8},  /* as many nodes have as many GPUs */
		{{NULL, "64(x2)", NULL, NULL}, 2, 0, 64},   /* as many as fit */
		{{NULL, NULL, NULL, NULL}, 2, 0, 1},        /* by no word of Slurm */
		{{"7", "6,1", NULL, NULL}, 2, 3, 3},        /* --tasks-per-node=3 */
		{{NULL, "64(x2),32", NULL, NULL}, 3, 4, 4}, /* --tasks-per-node=4 */
		{{"4", "2(x2)", NULL, NULL}, 2, 0, 2},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlb_run run = run_with(&cases[i].environment, cases[i].nodes);
		struct wlb_error error = {0};
		run.options.tasks_per_node = cases[i].option;
		assert_int_equal(wlb_run_job_tasks(&run, &error), 0);
		assert_int_equal(run.job.tasks_per_node, cases[i].tasks_per_node);
		assert_int_equal(run.job.tasks, 0);
	}
}

/* Slurm may also set SLURM_NTASKS then, with an unequal list. */
static void a_job_has_as_many_tasks_for_each_gpu_as_it_was_submitted_with(void **state)
{
	static const char *const variables[] = {"SLURM_NTASKS_PER_GPU", "SLURM_NTASKS_PER_TRES"};
	const struct environment gpus = {NULL, "32(x2)", NULL, "4"}, counted = {"16", "13,3", NULL, "4"},
				 none = {"4", "2(x2)", NULL, NULL};
	struct wlb_error error;
	(void)state;
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		struct wlb_run run = run_with(&gpus, 2);
		setenv(variables[i], "2", 1);
		assert_int_equal(wlb_run_job_tasks(&run, &error), 0);
		assert_int_equal(run.job.tasks_per_node, 8);
		run = run_with(&counted, 2);
		setenv(variables[i], "2", 1);
		assert_int_equal(wlb_run_job_tasks(&run, &error), 0);
		assert_int_equal(run.job.tasks_per_node, 8);
		run = run_with(&none, 2);
		setenv(variables[i], "2", 1);
		assert_int_equal(wlb_run_job_tasks(&run, &error), 0);
		assert_int_equal(run.job.tasks_per_node, 2);
	}
}

/* A second `wlb run` of a job that has lost a node since. */
static void a_lost_node_does_not_change_the_number_of_each(void **state)
{
	const struct environment gpus = {"24", "21,1(x3)", NULL, "8"};
	struct wlb_error error;
	(void)state;
	struct wlb_run run = run_with(&gpus, 4);
	run.job.node_count = 3;
	assert_int_equal(wlb_run_job_tasks(&run, &error), 0);
	assert_int_equal(run.job.tasks_per_node, 6);
}

static void different_numbers_are_refused(void **state)
{
	static const struct {
		struct environment environment;
		int nodes;
	} cases[] = {
		{{"7", "6,1", NULL, NULL}, 2},
		{{"30", "27,1(x3)", NULL, "8"}, 4},
		{{NULL, "64(x2),32", NULL, NULL}, 3},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlb_run run = run_with(&cases[i].environment, cases[i].nodes);
		struct wlb_error error = {0};
		char expected[64];
		assert_int_equal(wlb_run_job_tasks(&run, &error), -1);
		snprintf(expected, sizeof(expected), "SLURM_TASKS_PER_NODE is %s: ", cases[i].environment.list);
		assert_ptr_equal(strstr(error.message, expected), error.message);
		assert_non_null(strstr(error.message, "add --tasks-per-node to `wlb run`"));
	}
}

static void off_is_an_ordinary_job(void **state)
{
	const struct environment unequal = {"5", "3,2", NULL, NULL}, gpus = {"2", "1(x2)", NULL, "8"},
				 unnamed = {NULL, "64(x2),32", NULL, NULL};
	struct wlb_error error;
	(void)state;
	struct wlb_run run = run_with(&unequal, 2);
	run.job.off = true;
	assert_int_equal(wlb_run_job_tasks(&run, &error), 0);
	assert_int_equal(run.job.tasks, 5);
	run = run_with(&gpus, 2);
	run.job.off = true;
	assert_int_equal(wlb_run_job_tasks(&run, &error), 0);
	assert_int_equal(run.job.tasks, 2);
	run = run_with(&unnamed, 2);
	run.job.off = true;
	assert_int_equal(wlb_run_job_tasks(&run, &error), 0);
	assert_int_equal(run.job.tasks, 0);
	assert_int_equal(run.job.tasks_per_node, 64);
}

static void load_tasks(struct wlb_run *run)
{
	struct wlb_error error;
	assert_int_equal(wlb_run_journal_open(run, &error), 0);
	assert_int_equal(wlb_run_job_tasks(run, &error), 0);
	wlb_run_journal_close(run);
}

static void a_requeue_on_fewer_nodes_keeps_the_number_of_each(void **state)
{
	static const struct {
		struct environment first, second;
		int tasks_per_node;
	} cases[] = {
		{{"4", "1(x4)", NULL, "8"}, {"4", "2(x2)", NULL, "8"}, 1},
		{{"32", "29,1(x3)", NULL, "8"}, {"32", "31,1", NULL, "8"}, 8},
		{{"4", "1(x4)", NULL, NULL}, {"4", "3,1", NULL, NULL}, 1},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlb_run run = run_with(&cases[i].first, 4);
		load_tasks(&run);
		run = run_with(&cases[i].second, 2);
		run.job.restart_count = 1;
		run.job.submit_time = 2000;
		load_tasks(&run);
		assert_int_equal(run.job.tasks_per_node, cases[i].tasks_per_node);
	}
	struct wlb_run other = run_with(&cases[0].second, 2); /* another job of the same id */
	load_tasks(&other);
	assert_int_equal(other.job.tasks_per_node, 2);
}

static int remove_kept(void **state)
{
	(void)state;
	unlink(kept);
	return 0;
}

static int make_dir(void **state)
{
	(void)state;
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(kept, sizeof(kept), "%s/12.json", dir);
	return 0;
}

static int remove_dir(void **state)
{
	remove_kept(state);
	return rmdir(dir);
}

#define TEST(name) cmocka_unit_test_setup(name, remove_kept)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_job_has_the_tasks_of_its_submission),
		TEST(a_job_has_as_many_tasks_for_each_gpu_as_it_was_submitted_with),
		TEST(a_lost_node_does_not_change_the_number_of_each),
		TEST(different_numbers_are_refused),
		TEST(off_is_an_ordinary_job),
		TEST(a_requeue_on_fewer_nodes_keeps_the_number_of_each),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

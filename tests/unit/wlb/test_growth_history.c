#include "coordinator/wlb/run/growth_history.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/wlb-growth-XXXXXX";
static char job_path[64], outcome_path[64], second_path[64]; /* of the job, its first run and its second */

/* A `wlb run` of job 12, which has four nodes and has not read the file. */
static struct wlb_run *run_of(int64_t submit_time, uint32_t restart_count)
{
	static struct wlb_run run;
	run = (struct wlb_run){.job = {.job_id = 12, .submit_time = submit_time, .restart_count = restart_count},
	                       .grow = {.first_nodes = 4}};
	snprintf(run.id, sizeof(run.id), "12");
	snprintf(run.job.spool_dir, sizeof(run.job.spool_dir), "%s", dir);
	return &run;
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void remove_files(void)
{
	unlink(job_path);
	unlink(outcome_path);
	unlink(second_path);
}

static void expect(const struct wlb_run *run, int first_nodes, int growths_without_nodes, int nodes_before)
{
	assert_int_equal(run->grow.first_nodes, first_nodes);
	assert_int_equal(run->grow.growths_without_nodes, growths_without_nodes);
	assert_int_equal(run->grow.nodes_before, nodes_before);
}

static void the_next_wlb_run_knows_what_was_written(void **state)
{
	(void)state;
	struct wlb_run *run = run_of(1000, 0);
	run->grow.first_nodes = 6;
	run->grow.growths_without_nodes = 2;
	run->grow.nodes_before = 3;
	wlb_run_growth_write(run);
	run = run_of(1000, 0);
	wlb_run_growth_read(run);
	expect(run, 6, 2, 3);
	/* Queued again it has another submit time. */
	run = run_of(2000, 1);
	wlb_run_growth_read(run);
	expect(run, 6, 2, 3);
	/* Another job of the same id. */
	run = run_of(2000, 0);
	wlb_run_growth_read(run);
	expect(run, 4, 0, 0);
}

static void another_run_of_the_job_has_not_grown(void **state)
{
	(void)state;
	struct wlb_run *run = run_of(1000, 0);
	run->grow.first_nodes = 6;
	run->grow.growths_without_nodes = 2;
	run->grow.nodes_before = 3;
	wlb_run_growth_write(run);
	run = run_of(1000, 0);
	snprintf(run->id, sizeof(run->id), "12.2");
	wlb_run_growth_read(run);
	expect(run, 6, 0, 0);
	wlb_run_growth_write(run);
	run = run_of(2000, 1);
	wlb_run_growth_read(run);
	expect(run, 6, 2, 3);
}

static void a_file_of_an_earlier_version(void **state)
{
	(void)state;
	remove_files();
	write_file(job_path, "1000 6 2 3\n");
	struct wlb_run *run = run_of(1000, 0);
	wlb_run_growth_read(run);
	expect(run, 6, 0, 0);
}

static void the_most_nodes_count(void **state)
{
	(void)state;
	write_file(job_path, "1000 3\n");
	write_file(outcome_path, "1000 1 2\n");
	struct wlb_run *run = run_of(1000, 0);
	wlb_run_growth_read(run);
	expect(run, 4, 1, 2);
}

static void a_damaged_file_is_ignored(void **state)
{
	static const char *const jobs[] = {"", "1000", "1000 -1", "1000 99999999", "x 9"};
	static const char *const outcomes[] = {"", "1000 9", "1000 -1 1", "1000 1 -5", "1000 1 99999999", "x 1 1"};
	(void)state;
	remove_files();
	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
		write_file(job_path, jobs[i]);
		struct wlb_run *run = run_of(1000, 0);
		wlb_run_growth_read(run);
		expect(run, 4, 0, 0);
	}
	for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++) {
		write_file(outcome_path, outcomes[i]);
		struct wlb_run *run = run_of(1000, 0);
		wlb_run_growth_read(run);
		expect(run, 4, 0, 0);
	}
	remove_files();
	struct wlb_run *run = run_of(1000, 0);
	wlb_run_growth_read(run);
	expect(run, 4, 0, 0);
}

static int make_dir(void **state)
{
	(void)state;
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(job_path, sizeof(job_path), "%s/12.growth", dir);
	snprintf(outcome_path, sizeof(outcome_path), "%s/12.growth-outcome", dir);
	snprintf(second_path, sizeof(second_path), "%s/12.2.growth-outcome", dir);
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	remove_files();
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_next_wlb_run_knows_what_was_written),
		cmocka_unit_test(another_run_of_the_job_has_not_grown),
		cmocka_unit_test(a_file_of_an_earlier_version),
		cmocka_unit_test(the_most_nodes_count),
		cmocka_unit_test(a_damaged_file_is_ignored),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

/* What the starts and the runs of a job know of each other. The locks are of the open file, so that one process can
 * take the part of several. */
#include "coordinator/wlb/run/state/journal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "coordinator/wlb/run/state/progress.h"

static char dir[] = "/tmp/wlb-journal-XXXXXX";
static char path[64], other_path[64]; /* of the jobs 12 and 13 */

/* A `wlb run` of a job, which has four nodes and has not read the journal. */
static struct wlb_run open_job(uint32_t job_id, int64_t submit_time, uint32_t restart_count)
{
	struct wlb_error error;
	struct wlb_run run = {.job = {.job_id = job_id, .submit_time = submit_time, .restart_count = restart_count},
	                      .grow = {.first_nodes = 4}};
	snprintf(run.job.spool_dir, sizeof(run.job.spool_dir), "%s", dir);
	assert_int_equal(wlb_run_journal_open(&run, &error), 0);
	return run;
}

/* The run of that number, which has an entry. */
static struct wlb_run open_run(int64_t submit_time, uint32_t restart_count, int number)
{
	struct wlb_error error;
	struct wlb_run run = open_job(12, submit_time, restart_count);
	json_t *content = wlb_run_journal_begin(&run, &error), *runs = json_object_get(content, "runs");
	while ((int)json_array_size(runs) < number)
		json_array_append_new(runs, json_pack("{s:s}", "key", "command"));
	assert_int_equal(wlb_run_journal_end(&run, content, &error), 0);
	assert_int_equal(wlb_run_journal_work_as(&run, number, &error), 0);
	return run;
}

static void write_file(const char *text)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* ---- growths ---------------------------------------------------------------------------------------------------- */

static void write_growth(struct wlb_run run, int first_nodes, int growths_without_nodes, int nodes_before)
{
	run.grow.first_nodes = first_nodes;
	run.grow.growths_without_nodes = growths_without_nodes;
	run.grow.nodes_before = nodes_before;
	wlb_run_journal_write_growth(&run);
	wlb_run_journal_close(&run);
}

static void expect_growth(struct wlb_run run, int first_nodes, int growths_without_nodes, int nodes_before)
{
	wlb_run_journal_read_growth(&run);
	assert_int_equal(run.grow.first_nodes, first_nodes);
	assert_int_equal(run.grow.growths_without_nodes, growths_without_nodes);
	assert_int_equal(run.grow.nodes_before, nodes_before);
	wlb_run_journal_close(&run);
}

static void the_next_wlb_run_knows_how_the_run_has_grown(void **state)
{
	(void)state;
	write_growth(open_run(1000, 0, 1), 6, 2, 3);
	expect_growth(open_run(1000, 0, 1), 6, 2, 3);
	/* Queued again it has another submit time. */
	expect_growth(open_run(2000, 1, 1), 6, 2, 3);
	/* Another job of the same id. */
	expect_growth(open_run(2000, 0, 1), 4, 0, 0);
}

static void another_run_of_the_job_has_not_grown(void **state)
{
	(void)state;
	write_growth(open_run(1000, 0, 1), 6, 2, 3);
	expect_growth(open_run(1000, 0, 2), 6, 0, 0);
	write_growth(open_run(1000, 0, 2), 6, 0, 0);
	expect_growth(open_run(2000, 1, 1), 6, 2, 3);
}

static void the_most_nodes_count(void **state)
{
	(void)state;
	write_file("{\"submit_time\":1000,\"first_nodes\":3,"
	           "\"runs\":[{\"key\":\"a\",\"growths_without_nodes\":1,\"nodes_before\":2}]}");
	expect_growth(open_run(1000, 0, 1), 4, 1, 2);
}

static void numbers_that_cannot_be_believed_are_ignored(void **state)
{
	static const char *const members[] = {"",
	                                      "\"nodes_before\":9",
	                                      "\"growths_without_nodes\":-1,\"nodes_before\":1",
	                                      "\"growths_without_nodes\":1,\"nodes_before\":-5",
	                                      "\"growths_without_nodes\":1,\"nodes_before\":99999999",
	                                      "\"growths_without_nodes\":\"x\",\"nodes_before\":1"};
	static const char *const firsts[] = {"-1", "99999999", "\"9\"", "9.5"};
	char text[256];
	(void)state;
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		snprintf(text, sizeof(text), "{\"submit_time\":1000,\"runs\":[{\"key\":\"a\"%s%s}]}",
		         members[i][0] != '\0' ? "," : "", members[i]);
		write_file(text);
		expect_growth(open_run(1000, 0, 1), 4, 0, 0);
	}
	for (size_t i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++) {
		snprintf(text, sizeof(text), "{\"submit_time\":1000,\"first_nodes\":%s}", firsts[i]);
		write_file(text);
		expect_growth(open_run(1000, 0, 1), 4, 0, 0);
	}
	write_file("");
	expect_growth(open_run(1000, 0, 1), 4, 0, 0);
}

/* ---- layouts ---------------------------------------------------------------------------------------------------- */

static void expect_held(struct wlb_run run, int tp, int interleave)
{
	wlb_run_journal_read_held(&run);
	assert_int_equal(run.held.tp, tp);
	assert_int_equal(run.held.interleave, interleave);
	wlb_run_journal_close(&run);
}

static void the_layout_that_was_told_is_kept(void **state)
{
	(void)state;
	write_file("");
	struct wlb_run run = open_run(1000, 0, 1);
	run.held = (struct wlb_run_split){.tp = 2, .cp = 1, .pp = 4, .interleave = 3};
	wlb_run_journal_write_held(&run);
	wlb_run_journal_close(&run);
	expect_held(open_run(1000, 0, 1), 2, 3);
	expect_held(open_run(2000, 1, 1), 2, 3);
	expect_held(open_run(2000, 1, 2), 0, 0);
	write_file("{\"submit_time\":1000,\"runs\":[{\"key\":\"a\",\"held_tp\":2,\"held_cp\":0,\"held_pp\":1,"
	           "\"held_interleave\":1}]}");
	expect_held(open_run(1000, 0, 1), 0, 0);
}

/* ---- the file --------------------------------------------------------------------------------------------------- */

/* A process that was killed had reserved the space, or had not cut the file. */
static void what_follows_the_content_is_ignored(void **state)
{
	FILE *file;
	(void)state;
	write_growth(open_run(1000, 0, 1), 6, 2, 3);
	assert_non_null(file = fopen(path, "a"));
	fwrite("\0\0\0", 1, 3, file);
	fclose(file);
	expect_growth(open_run(1000, 0, 1), 6, 2, 3);
	assert_non_null(file = fopen(path, "a"));
	fputs("\"key\":\"a\"}]}", file);
	fclose(file);
	expect_growth(open_run(1000, 0, 1), 6, 2, 3);
}

static void what_each_keeps_leaves_the_rest(void **state)
{
	(void)state;
	struct wlb_run run = open_run(1000, 0, 1);
	wlb_run_journal_write_tasks(&run, 8);
	run.progress.saves = (struct wlb_run_longest){.before_s = 7.5, .block_s = 6.25, .count = 2};
	run.progress.steps = (struct wlb_run_longest){.block_s = 1.5};
	wlb_run_journal_write_times(&run);
	wlb_run_journal_close(&run);
	write_growth(open_run(1000, 0, 1), 6, 2, 3);
	run = open_run(2000, 1, 1);
	assert_int_equal(wlb_run_journal_read_tasks(&run), 8);
	wlb_run_journal_read_times(&run);
	assert_true(run.progress.saves.before_s == 7.5 && run.progress.saves.block_s == 6.25);
	assert_int_equal(run.progress.saves.count, 2);
	assert_true(wlb_run_longest_s(&run.progress.steps) == 1.5);
	wlb_run_journal_close(&run);
	struct wlb_run second = open_run(2000, 1, 2);
	wlb_run_journal_read_times(&second);
	assert_true(wlb_run_longest_s(&second.progress.saves) == 0.0);
	wlb_run_journal_close(&second);
}

static void expect_refusal(const char *text)
{
	struct wlb_run run = {.job.job_id = 12};
	struct wlb_error error;
	snprintf(run.job.spool_dir, sizeof(run.job.spool_dir), "%s", dir);
	assert_int_equal(wlb_run_journal_open(&run, &error), -1);
	assert_non_null(strstr(error.message, text));
	assert_non_null(strstr(error.message, "set WLB_SPOOL_DIR to"));
	assert_false(wlb_run_journal_others_work(&run));
	wlb_run_journal_leave(&run);
	wlb_run_journal_write_tasks(&run, 8);
	assert_int_equal(wlb_run_journal_read_tasks(&run), 0);
	wlb_run_journal_close(&run);
}

static void what_is_no_file_of_ours_is_said(void **state)
{
	(void)state;
	unlink(path);
	assert_int_equal(mkfifo(path, 0666), 0);
	expect_refusal("12.json: must be a regular file of user");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	expect_refusal("12.json: cannot be opened: Is a directory");
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	expect_refusal("12.json: cannot be opened: ");
	assert_int_equal(unlink(path), 0);
}

/* ---- other runs that work --------------------------------------------------------------------------------------- */

static void each_sees_the_others_of_its_job(void **state)
{
	struct wlb_run first = open_run(1000, 0, 1), of_another_job = open_job(13, 1000, 0);
	struct wlb_error error;
	(void)state;
	assert_int_equal(wlb_run_journal_work_as(&of_another_job, 1, &error), 0);
	assert_false(wlb_run_journal_others_work(&first));
	struct wlb_run second = open_run(1000, 0, 2);
	assert_true(wlb_run_journal_others_work(&first) && wlb_run_journal_others_work(&second));
	/* Looking has changed nothing. */
	assert_true(wlb_run_journal_others_work(&first) && wlb_run_journal_others_work(&second));
	assert_false(wlb_run_journal_others_work(&of_another_job));
	assert_true(wlb_run_journal_works(&first, 2) && wlb_run_journal_works(&second, 1));
	assert_false(wlb_run_journal_works(&first, 1) || wlb_run_journal_works(&first, 3));
	/* A change of the journal is no run. */
	json_t *content = wlb_run_journal_begin(&first, &error);
	assert_true(wlb_run_journal_works(&first, 2));
	wlb_run_journal_release(&first, content);
	/* One that has got another number works under that number alone. */
	assert_int_equal(wlb_run_journal_work_as(&second, 5, &error), 0);
	assert_true(wlb_run_journal_works(&first, 5) && !wlb_run_journal_works(&first, 2));
	/* One that has left still sees the other, which does not wait for it. */
	wlb_run_journal_leave(&first);
	assert_true(wlb_run_journal_others_work(&first) && !wlb_run_journal_others_work(&second));
	wlb_run_journal_close(&second);
	assert_false(wlb_run_journal_others_work(&first));
	wlb_run_journal_close(&first);
	wlb_run_journal_close(&of_another_job);
}

static int make_dir(void **state)
{
	(void)state;
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/12.json", dir);
	snprintf(other_path, sizeof(other_path), "%s/13.json", dir);
	return 0;
}

static int remove_files(void **state)
{
	(void)state;
	unlink(path);
	unlink(other_path);
	return 0;
}

static int remove_dir(void **state)
{
	remove_files(state);
	return rmdir(dir);
}

#define TEST(name) cmocka_unit_test_setup(name, remove_files)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_next_wlb_run_knows_how_the_run_has_grown),
		TEST(another_run_of_the_job_has_not_grown),
		TEST(the_most_nodes_count),
		TEST(numbers_that_cannot_be_believed_are_ignored),
		TEST(the_layout_that_was_told_is_kept),
		TEST(what_follows_the_content_is_ignored),
		TEST(what_each_keeps_leaves_the_rest),
		TEST(what_is_no_file_of_ours_is_said),
		TEST(each_sees_the_others_of_its_job),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

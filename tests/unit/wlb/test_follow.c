/* What an attempt's trainer says becomes records: of its files of metrics, and of what it prints. */
#include <fcntl.h>
#include <limits.h>
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

#include "coordinator/client/spool.h"
#include "coordinator/wlb/run/follow/event_source.h"
#include "coordinator/wlb/run/follow/follower.h"
#include "coordinator/wlb/run/follow/hook.h"
#include "coordinator/wlb/run/follow/left_files.h"
#include "coordinator/wlb/run/follow/line_files.h"
#include "coordinator/wlb/run/follow/output_file.h"

enum { TEXT_BYTES = 1 << 20 };

static char folder[] = "/tmp/wlb-follow-XXXXXX";
static char written[TEXT_BYTES]; /* a line for each record: what tests look at */
static int count;
static struct wlb_merged_records records;

static void write_record(void *context, const char *type, json_t *data, double time_s)
{
	static const char *const keys[] = {"step",   "is_of_attempt", "is_step",    "source",     "stream",
	                                   "at",     "span",          "interval_s", "duration_s", "path",
	                                   "values", "stall_s",       "bytes",      "save"};
	size_t used = strlen(written);
	(void)context;
	assert_non_null(data);
	used += (size_t)snprintf(written + used, sizeof(written) - used, "%s %g", type, time_s);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const json_t *value = json_object_get(data, keys[i]);
		char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
		if (value != NULL && !json_is_false(value))
			used += (size_t)snprintf(written + used, sizeof(written) - used, " %s=%s", keys[i], text);
		free(text);
	}
	snprintf(written + used, sizeof(written) - used, "\n");
	assert_true(strlen(written) < sizeof(written) - 256);
	count++;
	json_decref(data);
}

static int begin(void **state)
{
	(void)state;
	written[0] = '\0';
	count = 0;
	return wlb_merged_records_open(&records, write_record, NULL);
}

static int end(void **state)
{
	(void)state;
	if (records.merge != NULL)
		wlb_merged_records_close(&records);
	return 0;
}

static void append(const char *name, const char *text)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *file = fopen(path, "a");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static struct wlb_line_files *open_files(const char *name)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	struct wlb_line_files *files = wlb_line_files_open(path, WLB_SOURCE_LOG);
	assert_non_null(files);
	return files;
}

static void lines_of_two_nodes_become_records(void **state)
{
	struct wlb_line_files *files = open_files("a-");
	(void)state;
	assert_false(wlb_line_files_poll(files, &records, 100.0, 1000));
	append("a-0.jsonl", "{\"step\": 10, \"time\": 50, \"rank\": 1, \"loss\": 2.5}\n{\"step\": 20, \"ti");
	append("a-x.jsonl", "{\"step\": 77}\n");
	append("a-0.json", "{\"step\": 78}\n");
	wlb_line_files_poll(files, &records, 100.0, 1000);
	append("a-0.jsonl", "me\": 55, \"rank\": 1, \"loss\": NaN, \"x\": -Infinity}\nno record\n");
	append("a-12.jsonl", "{\"step\": 20, \"time\": 56, \"loss\": 9}\n"
	                     "{\"checkpoint\": \"/c\", \"save_s\": 2, \"time\": 57}\n{\"step\": 21, \"time\": 60}\n");
	wlb_line_files_poll(files, &records, 101.0, 1000);
	assert_string_equal(written,
	                    "followed 50 step=10 is_step=true source=\"log\" stream=1 at=0 values={\"loss\":2.5}\n"
	                    "followed 55 step=20 is_step=true source=\"log\" stream=1 at=49 span=10 "
	                    "interval_s=5.0 values={\"loss\":\"nan\",\"x\":\"-inf\"}\n"
	                    "checkpoint 57 step=20 duration_s=2.0 path=\"/c\"\n");
	struct wlb_line_counts counts = wlb_line_files_counts(files);
	assert_int_equal(counts.bad_lines, 1);
	assert_true(counts.why[0] != '\0');
	assert_int_equal(counts.unread_bytes, 0);
	wlb_line_files_remove(files);
	assert_int_equal(wlb_line_files_poll(files, &records, 102.0, 1000), 0);
	wlb_line_files_close(files);
}

/* A writer is never waited for, and one that writes too much is read piece by piece. */
static void a_poll_is_bounded(void **state)
{
	struct wlb_line_files *files = open_files("b-");
	(void)state;
	for (int step = 1; step <= 3000; step++) {
		char line[64];
		snprintf(line, sizeof(line), "{\"step\": %d, \"time\": %d, \"pad\": 1234567890}\n", step, step);
		append("b-0.jsonl", line);
	}
	assert_true(wlb_line_files_poll(files, &records, 4000.0, 1));
	int first = count;
	assert_in_range(first, 1, 2000);
	written[0] = '\0';
	for (int i = 0; i < 10 && wlb_line_files_poll(files, &records, 4000.0, 1); i++)
		written[0] = '\0';
	assert_int_equal(count, 3000);
	wlb_line_files_remove(files);
	wlb_line_files_close(files);
}

/* A writer that never ends its line, or cuts its file again and again, keeps nobody from the other sources. */
static void a_poll_is_bounded_also_without_lines(void **state)
{
	enum { BYTES = 40 << 20 };
	struct wlb_line_files *files = open_files("f-");
	char path[PATH_MAX];
	(void)state;
	append("f-0.jsonl", "{\"step\": 1}\n{\"step\": 2, \"loss\": ");
	snprintf(path, sizeof(path), "%s/f-0.jsonl", folder);
	assert_int_equal(truncate(path, BYTES), 0);
	assert_true(wlb_line_files_poll(files, &records, 100.0, 1000));
	assert_in_range(wlb_line_files_counts(files).unread_bytes, BYTES / 4, BYTES - (1 << 20));
	while (wlb_line_files_poll(files, &records, 100.0, 1000))
		;
	append("f-0.jsonl", "}\n{\"step\": 3}\n");
	wlb_line_files_poll(files, &records, 100.0, 1000);
	assert_int_equal(count, 2);
	assert_int_equal(wlb_line_files_counts(files).long_lines, 1);
	wlb_line_files_remove(files);
	wlb_line_files_close(files);
}

/* Polls; returns the records since the last call. */
static int records_of(struct wlb_line_files *files)
{
	int before = count;
	wlb_line_files_poll(files, &records, 100.0, 1000);
	return count - before;
}

/* While a file is read, something else takes its place: what is there is not read, which is said, and the file is when
 * it is back. */
static void what_takes_the_place_of_a_file_is_not_read(void **state)
{
	struct wlb_line_files *files = open_files("g-");
	char path[PATH_MAX], other[PATH_MAX];
	(void)state;
	snprintf(path, sizeof(path), "%s/g-0.jsonl", folder);
	snprintf(other, sizeof(other), "%s/other", folder);
	append("other", "{\"step\": 100}\n{\"step\": 101}\n{\"step\": 102}\n");
	append("g-0.jsonl", "{\"step\": 1}\n");
	assert_int_equal(records_of(files), 1);
	assert_true(unlink(path) == 0 && mkfifo(path, 0600) == 0);
	assert_int_equal(records_of(files), 0);
	assert_non_null(strstr(wlb_line_files_counts(files).why, "must be a regular file of user"));
	assert_true(unlink(path) == 0 && symlink(other, path) == 0);
	assert_int_equal(records_of(files), 0);
	assert_int_equal(wlb_line_files_counts(files).unread_bytes, 0);
	assert_true(unlink(path) == 0 && mkdir(path, 0700) == 0);
	assert_int_equal(records_of(files), 0);
	assert_true(rmdir(path) == 0);
	assert_int_equal(records_of(files), 0);
	if (geteuid() == 0) {
		append("g-0.jsonl", "{\"step\": 103}\n{\"step\": 104}\n");
		assert_int_equal(chown(path, 65534, 65534), 0);
		assert_int_equal(records_of(files), 0);
		assert_int_equal(unlink(path), 0);
	}
	append("g-0.jsonl", "{\"step\": 1}\n{\"step\": 2}\n");
	assert_int_equal(records_of(files), 1);
	assert_int_equal(truncate(path, 0), 0);
	append("g-0.jsonl", "{\"step\": 3");
	assert_int_equal(records_of(files), 0); /* half a line */
	append("g-0.jsonl", "0}\n");
	assert_int_equal(records_of(files), 1);
	assert_non_null(strstr(written, " step=30 "));
	assert_null(strstr(written, " step=10"));
	wlb_line_files_remove(files);
	wlb_line_files_close(files);
	assert_int_equal(unlink(other), 0);
}

/* What a trainer says is a record of its run: text that is made for terminals and for readers of files is none. */
static void what_is_said_is_text(void **state)
{
	struct wlb_line_files *files = open_files("h-");
	(void)state;
	append("h-0.jsonl",
	       "{\"step\": 9, \"loss\": NaN, \"a\": -Infinity, \"\\u001b]0;t\\u0007\\u001b[31mred\\r\\n\": 7}\n"
	       "{\"step\": 9, \"b\": 1e308}\n{\"step\": 9, \"c\": 1e999}\n{\"step\": 3, \"loss\": 1}\n"
	       "{\"step\": -1, \"step\": 1e99}\n{\"checkpoint\": \"/c\\u001b[2J\", \"step\": 3}\n"
	       "{\"run\": \"7\", \"attempt_id\": \"x\", \"step\": 4}\n");
	wlb_line_files_poll(files, &records, 100.0, 1000);
	assert_null(strchr(written, 0x1b));
	assert_null(strstr(written, "\\u001b"));
	assert_non_null(strstr(written, "{\"loss\":\"nan\",\"a\":\"-inf\",\"red\":7.0}"));
	assert_non_null(strstr(written, "{\"b\":\"inf\"}"));
	assert_non_null(strstr(written, " step=3 is_step=true"));
	assert_null(strstr(written, "run"));
	assert_int_equal(wlb_merge_count(records.merge).steps_back, 1);
	assert_int_equal(wlb_line_files_counts(files).bad_lines, 1); /* JSON has no number 1e999 */
	assert_int_equal(records.left_out_values, 2);
	wlb_line_files_remove(files);
	wlb_line_files_close(files);
}

static void steps_of_the_attempt_are_few_records(void **state)
{
	struct wlb_line_files *files = open_files("c-");
	(void)state;
	for (int step = 1; step <= 100; step++) {
		char line[64];
		snprintf(line, sizeof(line), "{\"step_of_attempt\": %d, \"time\": %g}\n", step, 100.0 + step / 100.0);
		append("c-0.jsonl", line);
	}
	append("c-0.jsonl", "{\"loss\": 1}\n{\"loss\": 2}\n{\"checkpoint\": \"/c\"}\n");
	wlb_line_files_poll(files, &records, 200.0, 1000);
	wlb_merged_records_close(&records);
	records.merge = NULL;
	assert_string_equal(
		written,
		"followed 100.01 step=1 is_of_attempt=true is_step=true source=\"log\" stream=1048576 at=0 values={}\n"
		"followed 200 step=100 is_of_attempt=true source=\"log\" stream=1048576 at=3980 values={\"loss\":1.0}\n"
		"followed 101 step=100 is_of_attempt=true is_step=true source=\"log\" stream=1048576 at=3942 "
		"values={}\n");
	assert_int_equal(records.left_out_records, 2);
	wlb_line_files_remove(files);
	wlb_line_files_close(files);
}

/* Each rank of the node tells of it; a program that logs such a value tells of a value. */
static void restarts_of_the_launcher_are_events(void **state)
{
	char path[PATH_MAX];
	(void)state;
	snprintf(path, sizeof(path), "%s/restarts.jsonl", folder);
	append("restarts.jsonl", "{\"rank\": 0, \"time\": 50, \"launcher_restarts\": 1}\n"
	                         "{\"rank\": 1, \"time\": 51, \"launcher_restarts\": 1}\n"
	                         "{\"rank\": 0, \"time\": 60, \"launcher_restarts\": 2}\n"
	                         "{\"rank\": 0, \"time\": 61, \"launcher_restarts\": 1e300}\n");
	struct wlb_line_files *files = wlb_line_files_open_one(path, WLB_SOURCE_HOOK);
	assert_non_null(files);
	wlb_line_files_poll(files, &records, 100, 10);
	assert_string_equal(written, "event 50\nevent 60\n");
	wlb_line_files_close(files);
	files = wlb_line_files_open_one(path, WLB_SOURCE_LOG);
	assert_non_null(files);
	wlb_line_files_poll(files, &records, 100, 10);
	assert_null(strstr(written + strlen("event 50\nevent 60\n"), "event"));
	wlb_line_files_close(files);
	assert_int_equal(unlink(path), 0);
}

/* Of a save that the hook has seen nobody has said that it is a checkpoint. Its time is not that of a step. */
static void saves_that_the_hook_sees_are_events(void **state)
{
	char path[PATH_MAX];
	(void)state;
	snprintf(path, sizeof(path), "%s/hook.jsonl", folder);
	struct wlb_line_files *files = wlb_line_files_open_one(path, WLB_SOURCE_HOOK);
	assert_non_null(files);
	wlb_line_files_poll(files, &records, 100.0, 1000);
	append("hook.jsonl",
	       "{\"step\": 1, \"time\": 50}\n{\"checkpoint\": \"/c\", \"save_s\": 2, \"bytes\": 9, \"time\": 53}\n"
	       "{\"checkpoint\": \"/d\", \"save_s\": 1}\n{\"step\": 2, \"time\": 54}\n");
	wlb_line_files_poll(files, &records, 100.0, 1000);
	assert_string_equal(written, "followed 50 step=1 is_step=true source=\"hook\" stream=1048576 at=0 values={}\n"
	                             "event 53 save={\"step\":1,\"path\":\"/c\",\"bytes\":9,\"duration_s\":2.0}\n"
	                             "followed 54 step=2 is_step=true source=\"hook\" stream=1048576 at=116 span=1 "
	                             "interval_s=1.0 values={}\n");
	wlb_line_files_remove(files);
	wlb_line_files_close(files);
}

/* A save during which training goes on takes only its stall from the time of the step; what the hook has seen of a save
 * that is told does not take its time twice. */
static void a_checkpoint_says_what_it_cost(void **state)
{
	char path[PATH_MAX];
	(void)state;
	struct wlb_line_files *files = open_files("d-");
	snprintf(path, sizeof(path), "%s/seen.jsonl", folder);
	append("seen.jsonl", "{\"checkpoint\": \"/c/x\", \"save_s\": 0.5, \"time\": 56}\n");
	append("d-0.jsonl", "{\"step\": 20, \"time\": 55}\n"
	                    "{\"checkpoint\": \"/c\", \"save_s\": 3, \"stall_s\": 0.5, \"bytes\": 1000, \"time\": 57}\n"
	                    "{\"checkpoint\": \"/d\", \"step\": 7, \"save_s\": -1, \"bytes\": 1e19, \"time\": 58}\n");
	wlb_line_files_poll(files, &records, 100.0, 1000);
	struct wlb_line_files *hook = wlb_line_files_open_one(path, WLB_SOURCE_HOOK);
	assert_non_null(hook);
	wlb_line_files_poll(hook, &records, 100.0, 1000);
	append("d-0.jsonl", "{\"step\": 21, \"time\": 60}\n");
	wlb_line_files_poll(files, &records, 101.0, 1000);
	assert_string_equal(written, "followed 55 step=20 is_step=true source=\"log\" stream=1048576 at=0 values={}\n"
	                             "checkpoint 57 step=20 duration_s=3.0 path=\"/c\" stall_s=0.5 bytes=1000\n"
	                             "checkpoint 58 step=7 path=\"/d\"\n"
	                             "event 56 save={\"step\":20,\"path\":\"/c/x\",\"duration_s\":0.5}\n"
	                             "followed 60 step=21 is_step=true source=\"log\" stream=1048576 at=175 span=1 "
	                             "interval_s=4.5 values={}\n");
	wlb_line_files_close(hook);
	wlb_line_files_remove(files);
	wlb_line_files_close(files);
	assert_int_equal(unlink(path), 0);
}

static void what_is_printed_becomes_records(void **state)
{
	struct wlb_output_file *file;
	struct wlb_error error;
	char path[PATH_MAX];
	(void)state;
	append("out", "step 1 loss 9.5\n");
	snprintf(path, sizeof(path), "%s/out", folder);
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(wlb_output_file_open(&file, fd, "step (\\d+) loss ([0-9.]+)", &error), 0);
	assert_non_null(file);
	wlb_output_file_poll(file, &records, 0, 100.0, false);
	append("out", "step 2 loss 2.5\nother\nstep 3 loss 2.25\nstep 4 lo");
	wlb_output_file_poll(file, &records, 0, 101.0, false);
	append("out", "ss 2\n");
	wlb_output_file_poll(file, &records, 0, 102.0, true);
	assert_int_equal(count, 3);
	assert_non_null(
		strstr(written, "step=2 is_step=true source=\"stdout\" stream=0 at=16 values={\"loss\":2.5}\n"));
	assert_non_null(strstr(written, " step=3 is_step=true source=\"stdout\" stream=0 at=38 span=1 "));
	assert_non_null(strstr(written, " step=4 is_step=true source=\"stdout\" stream=0 at=55 span=1 "));
	assert_int_equal(wlb_output_file_passed_bytes(file), 0);
	wlb_output_file_close(file);
	close(fd);
	assert_int_equal(unlink(path), 0);
}

static void pipes_are_not_read(void **state)
{
	struct wlb_output_file *file;
	struct wlb_error error;
	int ends[2];
	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(wlb_output_file_open(&file, ends[1], NULL, &error), 0);
	assert_null(file);
	close(ends[0]);
	close(ends[1]);
}

#define ATTEMPT "01234567-89ab-cdef-0123-456789abcdef"
#define FOLLOWED "01234567-89ab-cdef-0123-456789abcde0"

static bool is_in_folder(const char *name)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return access(path, F_OK) == 0;
}

static struct wlb_spool *open_spool(void)
{
	struct wlb_spool_identity identity;
	assert_int_equal(wlb_spool_identify(&identity, "7", ATTEMPT, "run", NULL), 0);
	struct wlb_spool *spool = wlb_spool_open(folder, &identity, NULL);
	assert_non_null(spool);
	return spool;
}

/* Returns how many lines of a file have the text. */
static int lines_with(const char *name, const char *text)
{
	char path[PATH_MAX], line[4096];
	int found = 0;
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL)
		found += strstr(line, text) != NULL;
	fclose(file);
	return found;
}

static void an_attempt_is_followed_to_its_end(void **state)
{
	static char *command[] = {"python3", "train.py", NULL};
	struct wlb_run run = {.options.command = command, .job.job_id = 9};
	struct wlb_attempt attempt = {.number = 1, .id = FOLLOWED};
	const struct wlb_reporter_options options = {
		.run_id = "9", .attempt_id = FOLLOWED, .source = "run", .spool_dir = folder, .rank = -1};
	char path[PATH_MAX];
	struct wlb_error error;
	(void)state;
	snprintf(run.job.spool_dir, sizeof(run.job.spool_dir), "%s", folder);
	wlb_run_metrics_files(&run.job, FOLLOWED, path, sizeof(path));
	assert_string_equal(strrchr(path, '/'), "/metrics-9-" FOLLOWED "-");
	assert_null(wlb_run_follower_start(&run, &attempt, NULL));
	struct wlb_reporter *reporter = wlb_reporter_start(NULL, &options, &error);
	assert_non_null(reporter);
	struct wlb_run_follower *follower = wlb_run_follower_start(&run, &attempt, reporter);
	assert_non_null(follower);
	struct wlb_run_hook hook;
	assert_true(wlb_run_hook_find(&run, &attempt, &hook));
	assert_true(wlb_run_hook_file_is_there(hook.file));
	append("metrics-9-" FOLLOWED "-3.jsonl", "{\"step\": 1, \"loss\": 2}\n{\"step\": 2, \"loss\": 1}\n");
	wlb_run_follower_stop(follower, 10000);
	assert_false(wlb_run_hook_file_is_there(hook.file));
	assert_false(is_in_folder("metrics-9-" FOLLOWED "-3.jsonl"));
	assert_int_equal(lines_with(FOLLOWED ".run.jsonl", "\"type\":\"followed\""), 2);
	wlb_reporter_abandon(reporter);
}

/* What is in the files of an attempt becomes records of its spool once its launcher has gone, and not before. */
static void what_a_killed_launcher_left_is_told(void **state)
{
	static const char name[] = "metrics-7-" ATTEMPT "-0.jsonl", other[] = "metrics-8-" ATTEMPT "-0.jsonl";
	static const char copy[] = "hook-7-" ATTEMPT ".jsonl";
	struct wlb_run_job job = {.job_id = 7};
	(void)state;
	snprintf(job.spool_dir, sizeof(job.spool_dir), "%s", folder);
	append(name, "{\"step\": 1, \"loss\": 2}\n{\"step\": 2, \"loss\": 1}\n");
	append(other, "{\"step\": 1, \"loss\": 2}\n");
	append(copy, "{\"step\": 3, \"accuracy\": 1}\n");
	wlb_run_take_left_files(&job);
	assert_true(is_in_folder(name)); /* without the spool nobody knows the numbers of its records */
	struct wlb_spool *spool = open_spool();
	assert_int_equal(wlb_spool_append(spool, "event", "{}", NULL), 0);
	wlb_run_take_left_files(&job);
	assert_true(is_in_folder(name));
	wlb_spool_close(spool, false);
	wlb_run_take_left_files(&job);
	assert_false(is_in_folder(name));
	assert_false(is_in_folder(copy));
	assert_true(is_in_folder(other));
	spool = open_spool();
	assert_int_equal(wlb_spool_pending(spool), 4);
	wlb_spool_close(spool, false);
}

/* The launcher is on a node that the attempt does not have, or on none. */
static void the_hook_of_another_node_is_copied(void **state)
{
	static char *nodes[] = {"n2", "n3"};
	struct wlb_run run = {.job = {.job_id = 9, .this_node = "n1"}};
	struct wlb_attempt attempt = {.number = 2, .id = FOLLOWED, .nodes = nodes, .node_count = 2};
	struct wlb_run_hook hook;
	char copy[PATH_MAX];
	(void)state;
	snprintf(run.job.spool_dir, sizeof(run.job.spool_dir), "%s", folder);
	snprintf(copy, sizeof(copy), "%s/hook-9-" FOLLOWED ".jsonl", folder);
	assert_true(wlb_run_hook_find(&run, &attempt, &hook));
	assert_string_equal(hook.node, "n2");
	assert_string_equal(hook.file, "/tmp/wlb-hook-" FOLLOWED ".jsonl");
	assert_string_equal(wlb_run_hook_read_from(&hook), copy);
	snprintf(run.job.this_node, sizeof(run.job.this_node), "n3");
	assert_true(wlb_run_hook_find(&run, &attempt, &hook));
	assert_string_equal(hook.node, "n3");
	assert_string_equal(wlb_run_hook_read_from(&hook), hook.file);
	snprintf(run.job.this_node, sizeof(run.job.this_node), "login");
	run.job.spool_dir[0] = '\0';
	assert_false(wlb_run_hook_find(&run, &attempt, &hook));
	run.options.no_hook = true;
	assert_false(wlb_run_hook_find(&run, &attempt, &hook));
}

/* Nobody else can have made the hook's file, nor turn a link into it. */
static void the_hooks_file_is_new(void **state)
{
	char path[PATH_MAX];
	(void)state;
	snprintf(path, sizeof(path), "%s/made", folder);
	assert_false(wlb_run_hook_file_is_there(path));
	assert_int_equal(symlink("/tmp/nothing", path), 0);
	assert_false(wlb_run_hook_file_make(path));
	assert_false(wlb_run_hook_file_is_there(path));
	assert_int_equal(unlink(path), 0);
	assert_true(wlb_run_hook_file_make(path));
	assert_true(wlb_run_hook_file_is_there(path));
	assert_false(wlb_run_hook_file_make(path));
}

static void commands_name_folders_of_events(void **state)
{
	(void)state;
	char *const megatron[] = {"python3", "pretrain_gpt.py", "--tensorboard-dir", "/t", NULL};
	char *const trainer[] = {"python3", "t.py", "--logging_dir=/l", NULL};
	char *const none[] = {"python3", "t.py", "--tensorboard-dir", NULL};
	assert_string_equal(wlb_event_folder_of(megatron), "/t");
	assert_string_equal(wlb_event_folder_of(trainer), "/l");
	assert_null(wlb_event_folder_of(none));
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) != NULL ? 0 : -1;
}

static int remove_folder(void **state)
{
	char command[64];
	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lines_of_two_nodes_become_records, begin, end),
		cmocka_unit_test_setup_teardown(a_poll_is_bounded, begin, end),
		cmocka_unit_test_setup_teardown(a_poll_is_bounded_also_without_lines, begin, end),
		cmocka_unit_test_setup_teardown(what_takes_the_place_of_a_file_is_not_read, begin, end),
		cmocka_unit_test_setup_teardown(what_is_said_is_text, begin, end),
		cmocka_unit_test_setup_teardown(steps_of_the_attempt_are_few_records, begin, end),
		cmocka_unit_test_setup_teardown(restarts_of_the_launcher_are_events, begin, end),
		cmocka_unit_test_setup_teardown(saves_that_the_hook_sees_are_events, begin, end),
		cmocka_unit_test_setup_teardown(a_checkpoint_says_what_it_cost, begin, end),
		cmocka_unit_test_setup_teardown(what_is_printed_becomes_records, begin, end),
		cmocka_unit_test(pipes_are_not_read),
		cmocka_unit_test(the_hook_of_another_node_is_copied),
		cmocka_unit_test(the_hooks_file_is_new),
		cmocka_unit_test(what_a_killed_launcher_left_is_told),
		cmocka_unit_test(an_attempt_is_followed_to_its_end),
		cmocka_unit_test(commands_name_folders_of_events),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

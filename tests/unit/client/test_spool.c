#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "common/file.h"
#include "coordinator/client/refused.h"
#include "coordinator/client/spool.h"

static char folder[] = "/tmp/wlb-spool-XXXXXX";
static char path[128];
static struct wlb_spool_identity identity;

static int make_folder(void **state)
{
	(void)state;
	if (mkdtemp(folder) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/a-1.rank0.jsonl", folder);
	return wlb_spool_identify(&identity, "12.2", "a-1", "rank0", NULL);
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

/* What is kept of line `line`. */
static const char *kept_path(int line)
{
	static char kept[160];
	snprintf(kept, sizeof(kept), "%s/refused/a-1.rank0.%d.damaged", folder, line);
	return kept;
}

static int remove_spool(void **state)
{
	char refused[64];
	(void)state;
	unlink(path);
	for (int line = 1; line < 20; line++)
		unlink(kept_path(line));
	snprintf(refused, sizeof(refused), "%s/refused", folder);
	rmdir(refused);
	return 0;
}

static void assert_kept(int line, const char *text)
{
	char *bytes;
	assert_int_equal(wlb_file_read(kept_path(line), 1000, &bytes, NULL, NULL), 0);
	assert_string_equal(bytes, text);
	free(bytes);
}

static struct wlb_spool *opened(void)
{
	struct wlb_error error;
	struct wlb_spool *spool = wlb_spool_open(folder, &identity, &error);
	if (spool == NULL)
		fail_msg("%s", error.message);
	return spool;
}

static void append_steps(struct wlb_spool *spool, int from, int to)
{
	for (int step = from; step <= to; step++) {
		char data[32];
		snprintf(data, sizeof(data), "{\"step\":%d}", step);
		assert_int_equal(wlb_spool_append(spool, "step", data, NULL), 0);
	}
}

/* The next batch, which must have records first..last of step numbers equal to their seq. */
static void assert_batch(struct wlb_spool *spool, int max, int first, int last)
{
	char *text = wlb_spool_batch(spool, max, NULL);
	assert_non_null(text);
	json_t *body = json_loads(text, 0, NULL);
	assert_non_null(body);
	json_int_t first_seq, job_id;
	json_t *records;
	assert_int_equal(
		json_unpack(body, "{s:I, s:I, s:o}", "first_seq", &first_seq, "job_id", &job_id, "records", &records),
		0);
	assert_int_equal(first_seq, first);
	assert_int_equal(job_id, 12);
	assert_int_equal(json_array_size(records), last - first + 1);
	for (int i = first; i <= last; i++) {
		json_int_t seq, step;
		assert_int_equal(json_unpack(json_array_get(records, (size_t)(i - first)), "{s:I, s:{s:I}}", "seq",
		                             &seq, "data", "step", &step),
		                 0);
		assert_int_equal(seq, i);
		assert_int_equal(step, i);
	}
	json_decref(body);
	free(text);
}

/* The file ends with a whole line. */
static void assert_whole(void)
{
	char *text;
	size_t length;
	assert_int_equal(wlb_file_read(path, 1 << 20, &text, &length, NULL), 0);
	assert_true(length > 0 && text[length - 1] == '\n');
	free(text);
}

static void records_come_out_as_they_went_in(void **state)
{
	struct wlb_spool *spool = opened();
	(void)state;
	assert_null(wlb_spool_batch(spool, 10, NULL));
	append_steps(spool, 1, 25);
	assert_int_equal(wlb_spool_pending(spool), 25);
	assert_batch(spool, 10, 1, 10);
	assert_batch(spool, 10, 1, 10);
	assert_int_equal(wlb_spool_acknowledge(spool, 10, NULL), 0);
	assert_batch(spool, 10, 11, 20);
	assert_int_equal(wlb_spool_acknowledge(spool, 25, NULL), 0);
	assert_int_equal(wlb_spool_pending(spool), 0);
	wlb_spool_close(spool, true);
	assert_int_equal(access(path, F_OK), -1);
}

static void a_coordinator_may_know_less_or_more(void **state)
{
	struct wlb_spool *spool = opened();
	(void)state;
	append_steps(spool, 1, 9);
	assert_int_equal(wlb_spool_acknowledge(spool, 7, NULL), 0);
	assert_int_equal(wlb_spool_acknowledge(spool, 3, NULL), 0);
	assert_batch(spool, 100, 4, 9);
	assert_int_equal(wlb_spool_acknowledge(spool, 1000, NULL), 0);
	assert_int_equal(wlb_spool_pending(spool), 0);
	wlb_spool_close(spool, true);
}

static void a_spool_goes_on_after_a_crash(void **state)
{
	struct wlb_spool *spool = opened();
	(void)state;
	append_steps(spool, 1, 4);
	wlb_spool_close(spool, true); /* not acknowledged: it stays */
	FILE *file = fopen(path, "a");
	fputs("{\"seq\":5,\"time\":1.5,\"ty", file);
	fclose(file);
	spool = opened();
	assert_whole();
	assert_kept(5, "{\"seq\":5,\"time\":1.5,\"ty");
	assert_int_equal(wlb_spool_pending(spool), 4);
	append_steps(spool, 5, 6);
	assert_batch(spool, 100, 1, 6);
	wlb_spool_close(spool, false);
}

static void a_torn_header_begins_anew(void **state)
{
	enum wlb_spool_adoption adoption;
	(void)state;
	assert_int_equal(wlb_file_write(path, "{\"wlb_sp", 8, 0600, NULL), 0);
	struct wlb_spool *spool = opened();
	append_steps(spool, 1, 2);
	assert_batch(spool, 100, 1, 2);
	wlb_spool_close(spool, false);
	assert_int_equal(wlb_file_write(path, "{\"wlb_sp", 8, 0600, NULL), 0);
	spool = wlb_spool_adopt(path, &adoption, NULL);
	assert_non_null(spool);
	assert_int_equal(wlb_spool_pending(spool), 0);
	wlb_spool_close(spool, true);
	assert_int_equal(access(path, F_OK), -1);
}

static void a_damaged_line_leaves_no_gap(void **state)
{
	struct wlb_spool *spool = opened();
	(void)state;
	append_steps(spool, 1, 3);
	wlb_spool_close(spool, false);
	char *text;
	assert_int_equal(wlb_file_read(path, 100000, &text, NULL, NULL), 0);
	memset(strstr(text, "{\"seq\":2"), '#', 20);
	assert_int_equal(wlb_file_write(path, text, strlen(text), 0600, NULL), 0);
	free(text);
	spool = opened();
	text = wlb_spool_batch(spool, 100, NULL);
	json_t *body = json_loads(text, 0, NULL);
	json_t *records = json_object_get(body, "records");
	const char *kind;
	json_int_t seq;
	assert_int_equal(json_array_size(records), 3);
	assert_int_equal(json_unpack(json_array_get(records, 1), "{s:I, s:{s:s}}", "seq", &seq, "data", "kind", &kind),
	                 0);
	assert_int_equal(seq, 2);
	assert_string_equal(kind, "spool_damaged");
	assert_int_equal(access(kept_path(2), F_OK), 0);
	json_decref(body);
	free(text);
	wlb_spool_close(spool, false);
}

static void bad_records_and_names_are_refused(void **state)
{
	static const char *const bad[] = {"", "{", "[1]", "{\"loss\":nan}", "{\"a\":1,\"a\":2}", "{} {}"};
	static const char *const names[] = {"", "../x", "a b", ".a", "a/b"};
	struct wlb_spool_identity other;
	struct wlb_spool *spool = opened();
	struct wlb_error error;
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(wlb_spool_append(spool, "step", bad[i], &error), -1);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(wlb_spool_identify(&other, "12", names[i], "run", &error), -1);
	assert_int_equal(wlb_spool_pending(spool), 0);
	wlb_spool_close(spool, true);
}

static void two_never_share_a_spool(void **state)
{
	struct wlb_spool *spool = opened();
	struct wlb_error error;
	enum wlb_spool_adoption adoption;
	(void)state;
	append_steps(spool, 1, 1);
	assert_null(wlb_spool_adopt(path, &adoption, &error));
	assert_int_equal(adoption, WLB_SPOOL_BUSY);
	assert_null(wlb_spool_open(folder, &identity, &error));
	assert_non_null(strstr(error.message, "in use"));
	wlb_spool_close(spool, false);
	assert_non_null(spool = wlb_spool_adopt(path, &adoption, &error));
	assert_string_equal(wlb_spool_identity(spool)->run_id, "12.2");
	wlb_spool_close(spool, false);
}

static void another_runs_spool_is_left_alone(void **state)
{
	struct wlb_spool_identity other;
	struct wlb_error error;
	(void)state;
	wlb_spool_close(opened(), false);
	assert_int_equal(wlb_spool_identify(&other, "13", "a-1", "rank0", &error), 0);
	assert_null(wlb_spool_open(folder, &other, &error));
	assert_non_null(strstr(error.message, "belongs to run 12.2"));
}

/* Files of another program that have such a name: with and without a newline at their end, on one line, empty. */
static void files_of_others_are_left_alone(void **state)
{
	static const char *const others[] = {
		"{\"text\":\"one\"}\n{\"text\":\"tw", "{\"text\":\"one\"}", "{\"wlb_spool\":1}\n{\"seq\":1",
		"{\"wlb_spool\":2,\"run_id\":\"1\",\"attempt_id\":\"a\",\"source\":\"r\",\"first_seq\":0}\n"};
	enum wlb_spool_adoption adoption;
	struct wlb_error error;
	char *text;
	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_int_equal(wlb_file_write(path, others[i], strlen(others[i]), 0600, NULL), 0);
		assert_null(wlb_spool_adopt(path, &adoption, &error));
		assert_int_equal(adoption, WLB_SPOOL_FOREIGN);
		assert_non_null(strstr(error.message, path));
		assert_null(wlb_spool_open(folder, &identity, &error));
		assert_non_null(strstr(error.message, "move it away"));
		assert_int_equal(wlb_file_read(path, 1000, &text, NULL, NULL), 0);
		assert_string_equal(text, others[i]);
		free(text);
	}
}

/* The bytes of each are kept, also where both were to be the same record. */
static void two_crashes_at_the_same_record(void **state)
{
	struct wlb_spool *spool = opened();
	(void)state;
	append_steps(spool, 1, 1);
	wlb_spool_close(spool, false);
	for (int i = 0; i < 3; i++) {
		FILE *file = fopen(path, "a");
		fputs(i == 0 ? "{\"seq\":2,\"first" : "{\"seq\":2,\"second", file);
		fclose(file);
		wlb_spool_close(opened(), false);
		assert_whole();
	}
	assert_kept(2, "{\"seq\":2,\"first\n{\"seq\":2,\"second");
}

static void assert_ended(bool ended)
{
	enum wlb_spool_adoption adoption;
	struct wlb_spool *spool = wlb_spool_adopt(path, &adoption, NULL);
	assert_non_null(spool);
	assert_int_equal(wlb_spool_has_ended(spool, NULL), ended);
	wlb_spool_close(spool, false);
}

static void set_age(int age_s)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = time(NULL) - age_s}};
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void append_text(const char *text)
{
	FILE *file = fopen(path, "a");
	fputs(text, file);
	fclose(file);
}

static void a_spool_has_a_writer_until_it_ends_or_is_idle(void **state)
{
	struct wlb_spool *spool = opened();
	(void)state;
	wlb_spool_close(spool, false);
	assert_ended(false);
	spool = opened();
	append_steps(spool, 1, 2);
	wlb_spool_close(spool, false);
	assert_ended(false);
	set_age(WLB_SPOOL_IDLE_S - 10);
	assert_ended(false);
	set_age(-3600); /* the clock of a file server is ahead */
	assert_ended(false);
	set_age(WLB_SPOOL_IDLE_S);
	assert_ended(true);
	spool = opened();
	wlb_spool_touch(spool);
	wlb_spool_close(spool, false);
	assert_ended(false);
	spool = opened();
	assert_int_equal(wlb_spool_append(spool, "attempt_end", "{}", NULL), 0);
	wlb_spool_close(spool, false);
	assert_ended(true);
	append_text("{\"seq\":4,");
	assert_ended(false);
}

/* What one host has written another may see late and with holes. */
static void what_may_be_complete_later_is_not_damaged(void **state)
{
	enum wlb_spool_adoption adoption;
	struct wlb_spool *spool = opened();
	(void)state;
	append_steps(spool, 1, 3);
	wlb_spool_close(spool, false);
	append_text("{\"seq\":4,\"time\":1\n{\"seq\":5,\"time\":1.5,\"type\":\"step\",\"data\":{\"step\":5}}\n");
	spool = wlb_spool_adopt(path, &adoption, NULL);
	assert_non_null(spool);
	assert_int_equal(wlb_spool_has_ended(spool, NULL), 0);
	assert_int_equal(wlb_spool_pending(spool), 3);
	assert_batch(spool, 100, 1, 3);
	wlb_spool_close(spool, false);
	assert_int_equal(access(kept_path(4), F_OK), -1);
	set_age(WLB_SPOOL_IDLE_S);
	spool = wlb_spool_adopt(path, &adoption, NULL);
	assert_int_equal(wlb_spool_has_ended(spool, NULL), 1);
	assert_int_equal(wlb_spool_pending(spool), 5);
	wlb_spool_close(spool, false);
}

/* Whoever adopts it does not cut it, and removes it only if the bytes are kept. */
static void a_torn_line_is_cut_by_its_writer_alone(void **state)
{
	enum wlb_spool_adoption adoption;
	char *before, *after;
	struct wlb_spool *spool = opened();
	(void)state;
	append_steps(spool, 1, 2);
	wlb_spool_close(spool, false);
	append_text("{\"seq\":3,\"ti");
	assert_int_equal(wlb_file_read(path, 1000, &before, NULL, NULL), 0);
	spool = wlb_spool_adopt(path, &adoption, NULL);
	assert_int_equal(wlb_spool_pending(spool), 2);
	assert_int_equal(wlb_file_read(path, 1000, &after, NULL, NULL), 0);
	assert_string_equal(after, before);
	free(before);
	free(after);
	assert_int_equal(wlb_spool_acknowledge(spool, 2, NULL), 0);
	append_text("me\":1"); /* the writer goes on */
	assert_false(wlb_spool_close(spool, true));
	assert_int_equal(access(path, F_OK), 0);
	spool = wlb_spool_adopt(path, &adoption, NULL);
	assert_int_equal(wlb_spool_acknowledge(spool, 2, NULL), 0);
	assert_true(wlb_spool_close(spool, true));
	assert_int_equal(access(path, F_OK), -1);
	assert_kept(3, "{\"seq\":3,\"time\":1");
}

/* Somebody who may write in the folder points refused/ to another: nothing is written or read there. */
static void refused_records_follow_no_link(void **state)
{
	char elsewhere[] = "/tmp/wlb-elsewhere-XXXXXX", link_path[64], notice[64];
	struct wlb_error error;
	struct wlb_spool *spool = opened();
	(void)state;
	assert_non_null(mkdtemp(elsewhere));
	snprintf(notice, sizeof(notice), "%s/notice", elsewhere);
	snprintf(link_path, sizeof(link_path), "%s/refused", folder);
	assert_int_equal(symlink(elsewhere, link_path), 0);
	append_steps(spool, 1, 2);
	assert_int_equal(wlb_spool_refuse(spool, "no", &error), -1);
	assert_non_null(strstr(error.message, link_path));
	assert_int_equal(wlb_refused_keep_bytes(path, 1, "x", 1, &error), -1);
	wlb_refused_leave_notice(path, "a line");
	wlb_spool_close(spool, false);
	assert_int_equal(access(notice, F_OK), -1);
	assert_int_equal(wlb_file_write(notice, "secret\n", 7, 0600, NULL), 0);
	assert_null(wlb_refused_take_notice(folder));
	assert_int_equal(unlink(notice), 0);
	assert_int_equal(unlink(link_path), 0);
	assert_int_equal(rmdir(elsewhere), 0);
}

/* A file-size limit stands for a full disk: the write comes up short, and half a record must not stay. */
static void a_full_disk_leaves_whole_records(void **state)
{
	struct wlb_spool *spool = opened();
	struct rlimit before, small = {.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};
	struct wlb_error error;
	int written = 0;
	(void)state;
	getrlimit(RLIMIT_FSIZE, &before);
	small.rlim_max = before.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	while (written < 1000) {
		char data[32];
		snprintf(data, sizeof(data), "{\"step\":%d}", written + 1);
		if (wlb_spool_append(spool, "step", data, &error) != 0)
			break;
		written++;
	}
	setrlimit(RLIMIT_FSIZE, &before);
	assert_whole();
	assert_in_range(written, 10, 100);
	assert_non_null(strstr(error.message, path));
	append_steps(spool, written + 1, written + 2);
	assert_batch(spool, 1000, 1, written + 2);
	wlb_spool_close(spool, false);
}

/* Records of a process that is killed between any two system calls are whole or absent. */
static void sigkill_tears_at_most_the_last_line(void **state)
{
	(void)state;
	pid_t child = fork();
	if (child == 0) {
		struct wlb_spool *spool = wlb_spool_open(folder, &identity, NULL);
		for (int step = 1;; step++) {
			char data[32];
			snprintf(data, sizeof(data), "{\"step\":%d}", step);
			wlb_spool_append(spool, "step", data, NULL);
		}
	}
	usleep(100000);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	struct wlb_spool *spool = opened();
	int64_t count = wlb_spool_pending(spool);
	unlink(kept_path((int)count + 1));
	assert_true(count > 10);
	assert_batch(spool, 10, 1, 10);
	append_steps(spool, (int)count + 1, (int)count + 1);
	assert_int_equal(wlb_spool_acknowledge(spool, count - 5, NULL), 0);
	assert_batch(spool, 10, (int)count - 4, (int)count + 1);
	wlb_spool_close(spool, false);
}

#define TEST(name) cmocka_unit_test_teardown(name, remove_spool)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(records_come_out_as_they_went_in),
		TEST(a_coordinator_may_know_less_or_more),
		TEST(a_spool_goes_on_after_a_crash),
		TEST(a_torn_header_begins_anew),
		TEST(a_damaged_line_leaves_no_gap),
		TEST(bad_records_and_names_are_refused),
		TEST(two_never_share_a_spool),
		TEST(another_runs_spool_is_left_alone),
		TEST(a_spool_has_a_writer_until_it_ends_or_is_idle),
		TEST(what_may_be_complete_later_is_not_damaged),
		TEST(a_torn_line_is_cut_by_its_writer_alone),
		TEST(refused_records_follow_no_link),
		TEST(files_of_others_are_left_alone),
		TEST(two_crashes_at_the_same_record),
		TEST(a_full_disk_leaves_whole_records),
		TEST(sigkill_tears_at_most_the_last_line),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

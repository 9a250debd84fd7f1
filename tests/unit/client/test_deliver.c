/* What a coordinator refuses for good, and what only looks like it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "common/file.h"
#include "coordinator/client/deliver.h"
#include "coordinator/client/refused.h"
#include "munged.h"
#include "server.h"

enum { RECORDS_MAX = 4000 };

/* Stores records in order as wlbd does, and refuses a batch with a record of type "bad" in it. */
struct coordinator {
	struct server *server;
	int64_t stored;
	int kinds[RECORDS_MAX]; /* what is stored at a number: see below */
	int requests;
	int status;       /* not 0: every request is answered so */
	const char *text; /* with this body, NULL: an error of ours */
	bool takes_all;
};
enum { KIND_GOOD = 1, KIND_BAD, KIND_EVENT };

static char folder[128], refused[160], path[160];

static int kind_of(const json_t *record)
{
	const char *type = json_string_value(json_object_get(record, "type"));
	assert_null(json_object_get(record, "refused"));
	return strcmp(type, "good") == 0 ? KIND_GOOD : strcmp(type, "bad") == 0 ? KIND_BAD : KIND_EVENT;
}

static bool has_bad(const json_t *records)
{
	for (size_t i = 0; i < json_array_size(records); i++)
		if (kind_of(json_array_get(records, i)) == KIND_BAD)
			return true;
	return false;
}

static bool answer(void *context, int fd, const struct request *request)
{
	struct coordinator *c = context;
	char reply[64];
	json_int_t first_seq = 0;
	json_t *body = json_loads(request->body, 0, NULL);
	const json_t *records = json_object_get(body, "records");
	c->requests++;
	json_unpack(body, "{s:I}", "first_seq", &first_seq);
	int status = c->status;
	if (status == 0 && first_seq > c->stored + 1)
		status = 409;
	else if (status == 0 && !c->takes_all && has_bad(records))
		status = 400;
	for (size_t i = 0; status == 0 && i < json_array_size(records); i++)
		if (first_seq + (int64_t)i > c->stored)
			c->kinds[++c->stored] = kind_of(json_array_get(records, i));
	json_decref(body);
	snprintf(reply, sizeof(reply), "{\"acked_seq\":%lld,\"error\":\"a gap\"}", (long long)c->stored);
	if (c->status != 0 || status == 400)
		return server_reply(fd, request, status, c->text != NULL ? c->text : "{\"error\":\"a bad record\"}");
	return server_reply(fd, request, status == 0 ? 200 : status, reply);
}

static void empty_folder(const char *name)
{
	char entry_path[512];
	DIR *dir = opendir(name);
	for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
		snprintf(entry_path, sizeof(entry_path), "%s/%s", name, entry->d_name);
		unlink(entry_path);
	}
	if (dir != NULL)
		closedir(dir);
	rmdir(name);
}

static int begin(void **state)
{
	struct coordinator *c = calloc(1, sizeof(*c));
	snprintf(folder, sizeof(folder), "%s/spool", munged_folder());
	snprintf(refused, sizeof(refused), "%s/refused", folder);
	snprintf(path, sizeof(path), "%s/a-1.rank0.jsonl", folder);
	c->server = server_start(answer, c);
	*state = c;
	return c->server != NULL ? 0 : -1;
}

static int end(void **state)
{
	struct coordinator *c = *state;
	server_stop(c->server);
	free(c);
	empty_folder(refused);
	empty_folder(folder);
	return 0;
}

/* ---- file systems whose locks fail, or that other hosts do not see -------------------------------------------- */

static int lock_result; /* of every flock(): 0, or an errno */
static bool locks_fail;

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);
int __wrap_flock(int fd, int operation)
{
	if (!locks_fail)
		return __real_flock(fd, operation);
	errno = lock_result;
	return lock_result == 0 ? 0 : -1;
}

/* ---- a spool that cannot be read ------------------------------------------------------------------------------ */

static ino_t unreadable;   /* 0: none */
static int reads_before;   /* of it, which succeed */
static bool is_read_again; /* only one read fails */

ssize_t __real_pread(int fd, void *data, size_t length, off_t offset);
ssize_t __wrap_pread(int fd, void *data, size_t length, off_t offset);
ssize_t __wrap_pread(int fd, void *data, size_t length, off_t offset)
{
	struct stat about;
	if (unreadable == 0 || fstat(fd, &about) != 0 || about.st_ino != unreadable || reads_before-- > 0)
		return __real_pread(fd, data, length, offset);
	if (is_read_again)
		unreadable = 0;
	errno = EIO;
	return -1;
}

/* ---- a folder with many files --------------------------------------------------------------------------------- */

static int other_files; /* that the next look at a folder finds before those that are there */

struct dirent *__real_readdir(DIR *dir);
struct dirent *__wrap_readdir(DIR *dir);
struct dirent *__wrap_readdir(DIR *dir)
{
	static struct dirent other;
	if (other_files == 0)
		return __real_readdir(dir);
	snprintf(other.d_name, sizeof(other.d_name), "%d.json", other_files--);
	return &other;
}

/* ---- spools --------------------------------------------------------------------------------------------------- */

static void set_age(int age_s)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = time(NULL) - age_s}};
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static struct wlb_spool *opened(void)
{
	struct wlb_spool_identity identity;
	wlb_spool_identify(&identity, "12", "a-1", "rank0", NULL);
	struct wlb_spool *spool = wlb_spool_open(folder, &identity, NULL);
	assert_non_null(spool);
	return spool;
}

/* Leaves a spool of `count` records; those whose numbers are in `bad` (ended by 0) are bad. */
static void leave_spool(int count, const int *bad)
{
	struct wlb_spool *spool = opened();
	for (int seq = 1; seq <= count; seq++) {
		bool is_bad = *bad == seq;
		bad += is_bad;
		assert_int_equal(wlb_spool_append(spool, is_bad ? "bad" : "good", "{}", NULL), 0);
	}
	wlb_spool_close(spool, false);
	set_age(WLB_SPOOL_IDLE_S);
}

static struct wlb_deliver_result deliver_with(struct coordinator *c, struct wlb_deliver_options options,
                                              struct wlb_error *error)
{
	struct wlb_client_config config = server_config(c->server);
	struct wlb_deliver_result result;
	options.timeout_ms = 20000;
	assert_int_equal(wlb_deliver_folder(&config, folder, &options, &result, error), 0);
	return result;
}

static struct wlb_deliver_result deliver_of(struct coordinator *c, const char *run_id, struct wlb_error *error)
{
	return deliver_with(c, (struct wlb_deliver_options){.run_id = run_id}, error);
}

static int restore(struct coordinator *c)
{
	struct wlb_client_config config = server_config(c->server);
	struct wlb_error error;
	int restored = wlb_deliver_restore(&config, folder, 5000, &error);
	if (restored < 0)
		print_message("%s\n", error.message);
	return restored;
}

static int lines_kept(void)
{
	char kept[200], *text;
	int lines = 0;
	snprintf(kept, sizeof(kept), "%s/a-1.rank0.jsonl", refused);
	if (wlb_file_read(kept, 1 << 20, &text, NULL, NULL) != 0)
		return -1;
	for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
		lines++;
	free(text);
	return lines - 1; /* the header */
}

static void bad_records_alone_are_set_aside(void **state)
{
	struct coordinator *c = *state;
	leave_spool(2500, (const int[]){1, 417, 418, 2500, 0});
	struct wlb_deliver_result result = deliver_of(c, NULL, NULL);
	assert_int_equal(result.left, 0);
	assert_int_equal(c->stored, 2500);
	for (int seq = 1; seq <= 2500; seq++)
		assert_int_equal(c->kinds[seq],
		                 seq == 1 || seq == 417 || seq == 418 || seq == 2500 ? KIND_EVENT : KIND_GOOD);
	assert_int_equal(lines_kept(), 4);
	assert_int_equal(access(path, F_OK), -1);
	assert_in_range(c->requests, 1, 120);
	char *notice = wlb_refused_take_notice(folder);
	assert_non_null(notice);
	assert_non_null(strstr(notice, "a bad record"));
	assert_non_null(strstr(notice, path));
	free(notice);
	assert_null(wlb_refused_take_notice(folder));
	int before = c->requests;
	assert_int_equal(deliver_of(c, NULL, NULL).spools, 0);
	assert_int_equal(c->requests, before);
}

static void they_are_stored_once_when_they_are_tried_again(void **state)
{
	struct coordinator *c = *state;
	leave_spool(10, (const int[]){3, 7, 0});
	deliver_of(c, NULL, NULL);
	assert_int_equal(restore(c), 1);
	assert_int_equal(deliver_of(c, NULL, NULL).left, 0); /* refused again */
	assert_int_equal(lines_kept(), 2);
	c->takes_all = true;
	int64_t before = c->stored;
	assert_int_equal(restore(c), 1);
	assert_int_equal(restore(c), 0);
	assert_int_equal(deliver_of(c, NULL, NULL).left, 0);
	assert_int_equal(c->stored, before + 2);
	assert_int_equal(c->kinds[before + 1], KIND_BAD);
	assert_int_equal(c->kinds[before + 2], KIND_BAD);
	assert_int_equal(lines_kept(), -1);
}

static void a_run_that_is_refused_is_set_aside_as_a_whole(void **state)
{
	struct coordinator *c = *state;
	c->status = 403;
	leave_spool(300, (const int[]){0});
	struct wlb_deliver_result result = deliver_of(c, NULL, NULL);
	assert_int_equal(result.refused, 300);
	assert_int_equal(result.left, 0);
	assert_int_equal(c->requests, 1);
	assert_int_equal(lines_kept(), 300);
	assert_int_equal(access(path, F_OK), -1);
	c->status = 0;
	assert_int_equal(restore(c), 1);
	assert_int_equal(deliver_of(c, NULL, NULL).left, 0);
	assert_int_equal(c->stored, 300);
}

static void an_answer_that_is_no_refusal_changes_nothing(void **state)
{
	static const struct {
		int status;
		const char *text;
	} answers[] = {{503, NULL}, {401, NULL}, {429, NULL}, {500, NULL}, {404, "<html>not found</html>"},
	               {403, "{}"}};
	struct coordinator *c = *state;
	leave_spool(5, (const int[]){0});
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		c->status = answers[i].status;
		c->text = answers[i].text;
		struct wlb_deliver_result result = deliver_of(c, NULL, NULL);
		assert_int_equal(result.left, 5);
		assert_true(result.unavailable);
	}
	assert_int_equal(lines_kept(), -1);
	c->status = 0;
	assert_int_equal(deliver_of(c, NULL, NULL).left, 0);
	assert_int_equal(c->stored, 5);
}

static void spools_of_other_runs_are_not_asked_about(void **state)
{
	struct coordinator *c = *state;
	leave_spool(5, (const int[]){0});
	assert_int_equal(deliver_of(c, "13", NULL).spools, 0);
	assert_int_equal(c->requests, 0);
	assert_int_equal(deliver_of(c, "12", NULL).spools, 1);
	assert_int_equal(c->stored, 5);
}

/* A folder of a user's data, which a user may name by mistake. */
static void files_that_are_no_spools_are_left_alone(void **state)
{
	static const char *const names[] = {"train.jsonl", "train.part1.jsonl", "a.b.jsonl", ".c.d.jsonl"};
	struct coordinator *c = *state;
	char file[400], *text;
	assert_int_equal(wlb_dir_make(folder, 0700, NULL), 0);
	for (int i = 0; i < 4; i++) {
		snprintf(file, sizeof(file), "%s/%s", folder, names[i]);
		assert_int_equal(wlb_file_write(file, "{\"text\":1}\n{\"te", 16, 0600, NULL), 0);
	}
	assert_false(wlb_deliver_pending(folder));
	struct wlb_deliver_result result = deliver_of(c, NULL, NULL);
	assert_int_equal(result.left + result.refused + result.spools + result.busy, 0);
	assert_int_equal(result.foreign, 2);
	assert_non_null(strstr(result.foreign_why.message, "not the header of a spool"));
	assert_int_equal(access(refused, F_OK), -1);
	for (int i = 0; i < 4; i++) {
		snprintf(file, sizeof(file), "%s/%s", folder, names[i]);
		assert_int_equal(wlb_file_read(file, 100, &text, NULL, NULL), 0);
		assert_string_equal(text, "{\"text\":1}\n{\"te");
		free(text);
	}
	leave_spool(1, (const int[]){0});
	assert_true(wlb_deliver_pending(folder));
}

/* Each job leaves some small files, and a folder may be that of many jobs. */
static void spools_are_found_among_many_other_files(void **state)
{
	struct coordinator *c = *state;
	leave_spool(5, (const int[]){0});
	other_files = 20001;
	assert_true(wlb_deliver_pending(folder));
	assert_int_equal(other_files, 0);
	other_files = 20001;
	struct wlb_deliver_result result = deliver_of(c, NULL, NULL);
	assert_int_equal(result.spools, 1);
	assert_int_equal(result.left, 0);
	assert_int_equal(c->stored, 5);
	assert_false(wlb_deliver_pending(folder));
}

static void append_good(struct wlb_spool *spool, int count)
{
	for (int i = 0; i < count; i++)
		assert_int_equal(wlb_spool_append(spool, "good", "{}", NULL), 0);
}

/* The locks of a file system fail, or are those of one host alone: a flush on another host gets the spool of a live
 * writer. What it delivers is stored once, and what the writer adds later is not lost. */
static void a_spool_with_a_writer_elsewhere_stays(void **state)
{
	static const int results[] = {ENOSYS, 0};
	struct coordinator *c = *state;
	struct stat before, after;
	locks_fail = true;
	for (int i = 0; i < 2; i++) {
		lock_result = results[i];
		c->stored = 0;
		struct wlb_spool *writer = opened();
		append_good(writer, 5);
		FILE *half = fopen(path, "a"); /* as far as the other host sees a record */
		fputs("{\"seq\":6,", half);
		fclose(half);
		assert_int_equal(stat(path, &before), 0);
		struct wlb_deliver_result result = deliver_of(c, NULL, NULL);
		assert_int_equal(result.kept, 1);
		assert_int_equal(result.left + result.refused + result.spools, 0);
		assert_int_equal(c->stored, 5);
		assert_int_equal(stat(path, &after), 0);
		assert_true(after.st_ino == before.st_ino && after.st_size == before.st_size);
		append_good(writer, 5);
		c->requests = 0;
		deliver_of(c, NULL, NULL);
		assert_int_equal(c->stored, 10);
		assert_int_equal(c->requests, 2); /* which are stored, and those that are not */
		wlb_spool_close(writer, false);
		set_age(WLB_SPOOL_IDLE_S);
		result = deliver_of(c, NULL, NULL);
		assert_int_equal(result.kept + result.left, 0);
		assert_int_equal(access(path, F_OK), -1);
		for (int seq = 1; seq <= 10; seq++)
			assert_int_equal(c->kinds[seq], KIND_GOOD);
	}
	locks_fail = false;
}

/* A writer that was killed, or one that has just begun. */
static void a_spool_without_a_whole_header_is_removed_later(void **state)
{
	struct coordinator *c = *state;
	assert_int_equal(wlb_dir_make(folder, 0700, NULL), 0);
	assert_int_equal(wlb_file_write(path, "{\"wlb_sp", 8, 0600, NULL), 0);
	assert_int_equal(deliver_of(c, NULL, NULL).kept, 1);
	assert_int_equal(access(path, F_OK), 0);
	set_age(WLB_SPOOL_IDLE_S);
	assert_int_equal(deliver_of(c, NULL, NULL).kept, 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(c->requests, 0);
}

/* The epilog of a job knows that it has ended; the job may have been requeued, and run. */
static void spools_of_an_ended_job_are_removed_at_once(void **state)
{
	struct coordinator *c = *state;
	struct wlb_deliver_options options = {.ended_job = 13, .ended_s = time(NULL) - 10};
	leave_spool(5, (const int[]){0});
	set_age(20);
	assert_int_equal(deliver_with(c, options, NULL).kept, 1);
	options.ended_job = 12;
	set_age(5);
	assert_int_equal(deliver_with(c, options, NULL).kept, 1);
	set_age(20);
	assert_int_equal(deliver_with(c, options, NULL).kept, 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(c->stored, 5);
}

/* A process of a node that was frozen writes its end after the job's, and holds its spool until it has ended. */
static void a_spool_of_an_ended_job_that_was_in_use_is_removed(void **state)
{
	struct coordinator *c = *state;
	struct wlb_deliver_in_use in_use = {0};
	struct wlb_deliver_options options = {.ended_job = 12, .ended_s = time(NULL) - 10, .in_use = &in_use};
	leave_spool(5, (const int[]){0});
	set_age(0);
	assert_int_equal(deliver_with(c, options, NULL).kept, 1);
	int writer = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(writer, LOCK_EX), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(deliver_with(c, options, NULL).busy, 1);
	assert_int_equal(in_use.count, 1);
	close(writer);
	options.ended_job = 13;
	assert_int_equal(deliver_with(c, options, NULL).kept, 1);
	options.ended_job = 12;
	assert_int_equal(deliver_with(c, options, NULL).kept, 0);
	assert_int_equal(access(path, F_OK), -1);
	wlb_deliver_in_use_free(&in_use);
}

/* It is looked at again once it has no writer, and then it is moved. */
static void a_refused_spool_with_a_writer_stays(void **state)
{
	struct coordinator *c = *state;
	c->status = 403;
	leave_spool(3, (const int[]){0});
	set_age(0);
	struct wlb_deliver_result result = deliver_of(c, NULL, NULL);
	assert_int_equal(result.kept, 1);
	assert_int_equal(result.refused + result.left, 0);
	assert_null(wlb_refused_take_notice(folder));
	assert_int_equal(deliver_of(c, "12", NULL).refused, 3);
	assert_int_equal(access(path, F_OK), -1);
}

/* Leaves a spool of three records, of another attempt, that is older than the others. */
static void leave_older_spool(char other[200])
{
	leave_spool(3, (const int[]){0});
	set_age(2 * WLB_SPOOL_IDLE_S);
	snprintf(other, 200, "%s/a-0.rank0.jsonl", folder);
	assert_int_equal(rename(path, other), 0);
}

/* Whether it cannot be read from the beginning, or from somewhere on. */
static void a_spool_that_cannot_be_read_holds_no_other_up(void **state)
{
	struct coordinator *c = *state;
	struct wlb_error error;
	struct stat about;
	char other[200];
	for (int reads = 0; reads < 12; reads++) {
		c->stored = 0;
		leave_older_spool(other);
		leave_spool(5, (const int[]){0});
		assert_int_equal(stat(other, &about), 0);
		unreadable = about.st_ino;
		reads_before = reads;
		struct wlb_deliver_result result = deliver_of(c, NULL, &error);
		unreadable = 0;
		assert_false(result.unavailable);
		assert_int_equal(access(path, F_OK), -1);
		assert_int_equal(c->stored, 5);
		if (access(other, F_OK) != 0) { /* read to its end before */
			assert_true(reads > 8);
			continue;
		}
		assert_true(result.left > 0);
		assert_non_null(strstr(error.message, other));
		assert_non_null(strstr(error.message, strerror(EIO)));
		unlink(other);
	}
}

/* A disk that fails once is no reason to refuse records that the coordinator takes. */
static void a_refused_record_that_cannot_be_kept_stays(void **state)
{
	struct coordinator *c = *state;
	struct stat about;
	is_read_again = true;
	bool failed = true;
	for (int reads = 0; failed; reads++) {
		c->stored = 0;
		leave_spool(2, (const int[]){1, 0});
		assert_int_equal(stat(path, &about), 0);
		unreadable = about.st_ino;
		reads_before = reads;
		struct wlb_deliver_result result = deliver_of(c, NULL, NULL);
		failed = unreadable == 0;
		unreadable = 0;
		assert_int_equal(result.refused, 0);
		assert_int_equal(deliver_of(c, NULL, NULL).left, 0);
		assert_int_equal(c->stored, 2);
		assert_int_equal(lines_kept(), 1);
		empty_folder(refused);
	}
	is_read_again = false;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(bad_records_alone_are_set_aside),
		TEST(they_are_stored_once_when_they_are_tried_again),
		TEST(a_run_that_is_refused_is_set_aside_as_a_whole),
		TEST(an_answer_that_is_no_refusal_changes_nothing),
		TEST(spools_of_other_runs_are_not_asked_about),
		TEST(a_spool_with_a_writer_elsewhere_stays),
		TEST(a_spool_without_a_whole_header_is_removed_later),
		TEST(spools_of_an_ended_job_are_removed_at_once),
		TEST(a_spool_of_an_ended_job_that_was_in_use_is_removed),
		TEST(a_refused_spool_with_a_writer_stays),
		TEST(a_spool_that_cannot_be_read_holds_no_other_up),
		TEST(a_refused_record_that_cannot_be_kept_stays),
		TEST(files_that_are_no_spools_are_left_alone),
		TEST(spools_are_found_among_many_other_files),
	};
	return cmocka_run_group_tests(tests, munged_start, munged_stop);
}

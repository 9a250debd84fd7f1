/* Replacing a dataset: the old one stays until the new one is on the disk, whichever call fails. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/data/fixture.h"
#include "worker/data/dataset.h"
#include "worker/data/index_writer.h"

static int calls, failing; /* calls of fsync so far; the number of the one that fails, from 1 on */

int __real_fsync(int fd);
int __wrap_fsync(int fd);

int __wrap_fsync(int fd)
{
	if (++calls != failing)
		return __real_fsync(fd);
	errno = EIO;
	return -1;
}

static int renames, first_failing, last_failing; /* calls of rename so far; those that fail, from 1 on */

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);

int __wrap_rename(const char *from, const char *to)
{
	renames++;
	if (renames < first_failing || renames > last_failing)
		return __real_rename(from, to);
	errno = EIO;
	return -1;
}

/* Writes a dataset of so many documents; the `failed`-th fsync fails. */
static int write_dataset(void **state, int documents, int failed, struct wlb_error *error)
{
	static const int32_t tokens[] = {1, 2, 3}, length = 3;
	struct wlb_index_writer *w = wlb_index_writer_new(fixture_path(state, "x"), WLB_INDEX_UINT16, error);
	assert_non_null(w);
	for (int i = 0; i < documents; i++)
		assert_int_equal(wlb_index_writer_add(w, tokens, &length, 1, error), 0);
	calls = renames = 0;
	failing = failed;
	int rc = wlb_index_writer_commit(w, "{}", error);
	wlb_index_writer_free(w);
	return rc;
}

static int64_t count_documents(void **state)
{
	struct wlb_error error;
	struct wlb_dataset *d;
	if (wlb_dataset_open(fixture_path(state, "x"), &d, &error) < 0)
		fail_msg("%s", error.message);
	int64_t documents = wlb_dataset_documents(d);
	wlb_dataset_close(d);
	return documents;
}

/* Both files of the new dataset are synced while the old one is there. */
static void test_new_files_cannot_be_synced(void **state)
{
	struct wlb_error error;
	assert_int_equal(write_dataset(state, 2, 0, &error), 0);
	for (int failed = 1; failed <= 3; failed++) {
		assert_int_equal(write_dataset(state, 5, failed, &error), -1);
		assert_int_equal(count_documents(state), 2);
		assert_int_equal(fixture_entries(*state), 3);
		assert_says(error.message, failed == 1 ? "x.bin." : failed == 2 ? "x.facts.json." : "x.idx.");
		assert_says(error.message, "cannot be synced: Input/output error");
	}
}

/* The folder cannot be synced after the tokens or both files have their names: the new dataset is whole and stays. */
static void test_folder_cannot_be_synced(void **state)
{
	struct wlb_error error;
	assert_int_equal(write_dataset(state, 2, 0, &error), 0);
	int last = calls;
	assert_int_equal(last, 5);
	for (int failed = 4; failed <= last; failed++) {
		assert_int_equal(write_dataset(state, failed + 2, failed, &error), -1);
		assert_int_equal(count_documents(state), failed + 2);
		assert_int_equal(fixture_entries(*state), 3);
		assert_says(error.message, "x.idx: are complete and have their names, which a power loss may undo");
		assert_says(error.message, "cannot be synced: Input/output error: build them again");
	}
}

static void write_with_failing_renames(void **state, int first, int last, struct wlb_error *error)
{
	first_failing = first;
	last_failing = last;
	int rc = write_dataset(state, 5, 0, error);
	first_failing = last_failing = 0;
	assert_int_equal(rc, -1);
	assert_says(error->message, "cannot be replaced: Input/output error");
}

static void test_files_cannot_be_renamed(void **state)
{
	enum { RENAMES = 6 }; /* three old files, three new ones */
	struct wlb_error error;
	for (int failed = 1; failed <= RENAMES / 2; failed++) {
		write_with_failing_renames(state, failed, failed, &error);
		assert_int_equal(fixture_entries(*state), 0);
	}
	assert_int_equal(write_dataset(state, 2, 0, &error), 0);
	for (int failed = 1; failed <= RENAMES; failed++) {
		write_with_failing_renames(state, failed, failed, &error);
		assert_int_equal(count_documents(state), 2);
		assert_int_equal(fixture_entries(*state), 3);
	}
	/* The file system has become read-only: what is left of the old dataset is named. */
	write_with_failing_renames(state, RENAMES, INT_MAX, &error);
	assert_says(error.message, "the old dataset could not be put back: rename ");
	assert_true(fixture_exists(fixture_path(state, "x.bin.replaced")));
	assert_true(fixture_exists(fixture_path(state, "x.facts.json.replaced")));
	assert_true(fixture_exists(fixture_path(state, "x.idx.replaced")));
	write_with_failing_renames(state, 2, 2, &error);
	assert_int_equal(rename(fixture_path(state, "x.bin.replaced"), fixture_path(state, "x.bin")), 0);
	assert_int_equal(rename(fixture_path(state, "x.facts.json.replaced"), fixture_path(state, "x.facts.json")), 0);
	assert_int_equal(rename(fixture_path(state, "x.idx.replaced"), fixture_path(state, "x.idx")), 0);
	assert_int_equal(count_documents(state), 2);
	write_with_failing_renames(state, RENAMES, INT_MAX, &error);
	assert_int_equal(write_dataset(state, 3, 0, &error), 0);
	assert_int_equal(count_documents(state), 3);
	assert_int_equal(fixture_entries(*state), 3);
}

static void test_directory_of_that_name(void **state)
{
	struct wlb_error error;
	assert_int_equal(mkdir(fixture_path(state, "x.idx"), 0777), 0);
	assert_int_equal(write_dataset(state, 2, 0, &error), -1);
	assert_says(error.message, "x.idx: is a directory: remove it, or give another prefix");
	assert_int_equal(fixture_entries(*state), 1);
}

/* A process that is killed while it writes; the next one removes its file, and no other. */
static void test_killed_writer(void **state)
{
	struct wlb_error error;
	pid_t child = fork();
	if (child == 0) {
		wlb_index_writer_new(fixture_path(state, "x"), WLB_INDEX_UINT16, &error);
		raise(SIGKILL);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(fixture_entries(*state), 2);
	static const char *const others[] = {"x.bin.backup", "x.bin.abcdef.partial.gz", "x.bin.abc-ef.partial",
	                                     "y.bin.abcdef.partial", "x.bin.abcdef.archive"};
	enum { OTHERS = sizeof(others) / sizeof(others[0]) };
	for (int i = 0; i < OTHERS; i++)
		fixture_write_text(state, others[i], "");
	fixture_write_text(state, "x.idx.abcdef.partial", "");
	assert_int_equal(symlink("x.bin.backup", fixture_path(state, "x.idx.linked.partial")), 0);
	assert_int_equal(write_dataset(state, 2, 0, &error), 0);
	for (int i = 0; i < OTHERS; i++)
		assert_true(fixture_exists(fixture_path(state, others[i])));
	assert_true(fixture_exists(fixture_path(state, "x.idx.linked.partial")));
	assert_int_equal(fixture_entries(*state), OTHERS + 1 + 3);
}

/* Two at the same time: neither removes what the other writes. */
static void test_two_writers(void **state)
{
	struct wlb_error error;
	struct wlb_index_writer *first = wlb_index_writer_new(fixture_path(state, "x"), WLB_INDEX_UINT16, &error);
	assert_non_null(first);
	assert_int_equal(write_dataset(state, 2, 0, &error), 0);
	assert_int_equal(wlb_index_writer_commit(first, "{}", &error), 0);
	wlb_index_writer_free(first);
	assert_int_equal(count_documents(state), 0);
	assert_int_equal(fixture_entries(*state), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_new_files_cannot_be_synced, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_folder_cannot_be_synced, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_files_cannot_be_renamed, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_directory_of_that_name, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_killed_writer, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_two_writers, fixture_setup, fixture_teardown),
	};
	return cmocka_run_group_tests_name("index_writer", tests, NULL, NULL);
}

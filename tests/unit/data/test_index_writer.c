/* Replacing a dataset: the old one stays until the new one is on the disk, whichever fsync fails. */
#include <errno.h>
#include <signal.h>
#include <string.h>
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

/* Writes a dataset of so many documents; the `failed`-th fsync fails. */
static int write_dataset(void **state, int documents, int failed, struct wlb_error *error)
{
	static const uint16_t tokens[] = {1, 2, 3};
	struct wlb_index_writer *w = wlb_index_writer_new(fixture_path(state, "x"), error);
	assert_non_null(w);
	for (int i = 0; i < documents; i++)
		assert_int_equal(wlb_index_writer_add(w, tokens, 3, error), 0);
	calls = 0;
	failing = failed;
	int rc = wlb_index_writer_commit(w, error);
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
	for (int failed = 1; failed <= 2; failed++) {
		assert_int_equal(write_dataset(state, 5, failed, &error), -1);
		assert_int_equal(count_documents(state), 2);
		assert_int_equal(fixture_entries(*state), 2);
		assert_says(error.message, failed == 1 ? "x.bin." : "x.idx.");
		assert_says(error.message, "cannot be synced: Input/output error");
	}
}

/* The folder cannot be synced after both files have their names: the new dataset is whole and stays. */
static void test_folder_cannot_be_synced(void **state)
{
	struct wlb_error error;
	assert_int_equal(write_dataset(state, 2, 0, &error), 0);
	int last = calls;
	assert_int_equal(write_dataset(state, 5, last, &error), -1);
	assert_int_equal(count_documents(state), 5);
	assert_int_equal(fixture_entries(*state), 2);
}

/* A process that is killed while it writes; the next one removes its file, and no other. */
static void test_killed_writer(void **state)
{
	struct wlb_error error;
	pid_t child = fork();
	if (child == 0) {
		wlb_index_writer_new(fixture_path(state, "x"), &error);
		raise(SIGKILL);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(fixture_entries(*state), 1);
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
	assert_int_equal(fixture_entries(*state), OTHERS + 1 + 2);
}

/* Two at the same time: neither removes what the other writes. */
static void test_two_writers(void **state)
{
	struct wlb_error error;
	struct wlb_index_writer *first = wlb_index_writer_new(fixture_path(state, "x"), &error);
	assert_non_null(first);
	assert_int_equal(write_dataset(state, 2, 0, &error), 0);
	assert_int_equal(wlb_index_writer_commit(first, &error), 0);
	wlb_index_writer_free(first);
	assert_int_equal(count_documents(state), 0);
	assert_int_equal(fixture_entries(*state), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_new_files_cannot_be_synced, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_folder_cannot_be_synced, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_killed_writer, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_two_writers, fixture_setup, fixture_teardown),
	};
	return cmocka_run_group_tests_name("index_writer", tests, NULL, NULL);
}

/* A spool on a file system that fails for a moment: what it has must still be there afterwards. */
#include <errno.h>
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

#include "common/file.h"
#include "coordinator/client/spool.h"

static char folder[] = "/tmp/wlb-spool-errors-XXXXXX";
static char path[128];
static struct wlb_spool_identity identity;

/* ---- a file system that fails --------------------------------------------------------------------------------- */

static int reads_before;  /* reads that succeed before one fails */
static int read_failure;  /* its errno, 0: none fails, -1: it is short and then at the end */
static int write_failure; /* of every write() */
static int sync_failure;  /* of every fdatasync() */
static int data_syncs, folder_syncs;

ssize_t __real_pread(int fd, void *data, size_t length, off_t offset);
ssize_t __wrap_pread(int fd, void *data, size_t length, off_t offset);
ssize_t __wrap_pread(int fd, void *data, size_t length, off_t offset)
{
	if (read_failure == 0 || reads_before-- > 0)
		return __real_pread(fd, data, length, offset);
	if (read_failure == -1)
		return 0;
	errno = read_failure;
	if (read_failure == EINTR)
		read_failure = 0;
	return -1;
}

ssize_t __real_write(int fd, const void *data, size_t length);
ssize_t __wrap_write(int fd, const void *data, size_t length);
ssize_t __wrap_write(int fd, const void *data, size_t length)
{
	if (write_failure == 0)
		return __real_write(fd, data, length);
	errno = write_failure;
	return -1;
}

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
int __wrap_fdatasync(int fd)
{
	data_syncs++;
	if (sync_failure == 0)
		return __real_fdatasync(fd);
	errno = sync_failure;
	return -1;
}

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
	struct stat about, expected;
	if (fstat(fd, &about) == 0 && stat(folder, &expected) == 0 && about.st_ino == expected.st_ino)
		folder_syncs++;
	return __real_fsync(fd);
}

/* ---- the tests ------------------------------------------------------------------------------------------------ */

static int make_folder(void **state)
{
	(void)state;
	if (mkdtemp(folder) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/a-1.rank0.jsonl", folder);
	return wlb_spool_identify(&identity, "12", "a-1", "rank0", NULL);
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

static int repair(void **state)
{
	char kept[160];
	(void)state;
	read_failure = reads_before = write_failure = sync_failure = 0;
	unlink(path);
	snprintf(kept, sizeof(kept), "%s/refused/a-1.rank0.101.damaged", folder);
	unlink(kept);
	snprintf(kept, sizeof(kept), "%s/refused", folder);
	rmdir(kept);
	return 0;
}

static char *content(void)
{
	char *text;
	assert_int_equal(wlb_file_read(path, 1 << 20, &text, NULL, NULL), 0);
	return text;
}

/* Leaves a spool of 100 records, which are several reads long, and half of another. */
static void leave_spool(void)
{
	char data[256];
	struct wlb_spool *spool = wlb_spool_open(folder, &identity, NULL);
	assert_non_null(spool);
	for (int step = 1; step <= 100; step++) {
		snprintf(data, sizeof(data), "{\"step\":%d,\"text\":\"%0200d\"}", step, step);
		assert_int_equal(wlb_spool_append(spool, "step", data, NULL), 0);
	}
	wlb_spool_close(spool, false);
	FILE *file = fopen(path, "a");
	fputs("{\"seq\":101,", file);
	fclose(file);
}

/* The message must name the file and the reason, and the file must be as before. */
static void assert_unchanged(const struct wlb_error *error, const char *why, const char *before)
{
	assert_non_null(strstr(error->message, path));
	assert_non_null(strstr(error->message, why));
	char *after = content();
	assert_string_equal(after, before);
	free(after);
}

static void an_error_of_reading_changes_nothing(void **state)
{
	static const int failures[] = {EIO, ESTALE, -1};
	enum wlb_spool_adoption adoption;
	struct wlb_error error;
	(void)state;
	leave_spool();
	char *before = content();
	for (int i = 0; i < 3; i++) {
		for (int reads = 0; reads < 5; reads++) {
			for (int open = 0; open < 2; open++) {
				reads_before = reads;
				read_failure = failures[i];
				struct wlb_spool *spool = open ? wlb_spool_open(folder, &identity, &error)
				                               : wlb_spool_adopt(path, &adoption, &error);
				read_failure = 0;
				assert_null(spool);
				assert_true(open || adoption == WLB_SPOOL_FAILED);
				assert_unchanged(&error, strerror(failures[i] > 0 ? failures[i] : EIO), before);
			}
		}
	}
	free(before);
	struct wlb_spool *spool = wlb_spool_adopt(path, &adoption, &error);
	assert_non_null(spool);
	assert_int_equal(wlb_spool_pending(spool), 100);
	wlb_spool_close(spool, false);
}

static void an_interrupted_read_is_made_again(void **state)
{
	enum wlb_spool_adoption adoption;
	(void)state;
	leave_spool();
	for (int reads = 0; reads < 5; reads++) {
		reads_before = reads;
		read_failure = EINTR;
		struct wlb_spool *spool = wlb_spool_adopt(path, &adoption, NULL);
		assert_non_null(spool);
		assert_int_equal(wlb_spool_pending(spool), 100);
		wlb_spool_close(spool, false);
	}
}

static void a_torn_line_is_not_cut_before_it_is_kept(void **state)
{
	struct wlb_error error;
	(void)state;
	leave_spool();
	char *before = content();
	write_failure = ENOSPC;
	assert_null(wlb_spool_open(folder, &identity, &error));
	assert_unchanged(&error, strerror(ENOSPC), before);
	free(before);
	write_failure = 0;
	struct wlb_spool *spool = wlb_spool_open(folder, &identity, &error);
	assert_non_null(spool);
	assert_int_equal(wlb_spool_pending(spool), 100);
	wlb_spool_close(spool, false);
}

/* The record is not given up, and the folder that has the new file is synced too, once. */
static void a_failed_sync_is_made_again(void **state)
{
	struct wlb_error error;
	struct wlb_spool *spool = wlb_spool_open(folder, &identity, &error);
	(void)state;
	assert_non_null(spool);
	data_syncs = folder_syncs = 0;
	assert_int_equal(wlb_spool_append(spool, "step", "{}", NULL), 0);
	sync_failure = ENOSPC;
	assert_int_equal(wlb_spool_sync(spool, &error), -1);
	assert_non_null(strstr(error.message, path));
	assert_non_null(strstr(error.message, strerror(ENOSPC)));
	sync_failure = 0;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(wlb_spool_sync(spool, &error), 0);
		assert_int_equal(data_syncs, 2);
		assert_int_equal(folder_syncs, 1);
	}
	assert_int_equal(wlb_spool_append(spool, "step", "{}", NULL), 0);
	assert_int_equal(wlb_spool_sync(spool, &error), 0);
	assert_int_equal(data_syncs, 3);
	assert_int_equal(folder_syncs, 1);
	wlb_spool_close(spool, false);
}

/* Later, when records are delivered. */
static void a_batch_that_cannot_be_read_is_no_batch(void **state)
{
	enum wlb_spool_adoption adoption;
	struct wlb_error error;
	(void)state;
	leave_spool();
	struct wlb_spool *spool = wlb_spool_adopt(path, &adoption, &error);
	char *before = content();
	read_failure = ESTALE;
	assert_null(wlb_spool_batch(spool, 10, &error));
	assert_unchanged(&error, strerror(ESTALE), before);
	assert_int_equal(wlb_spool_acknowledge(spool, 10, &error), -1);
	assert_int_equal(wlb_spool_refuse_rest(spool, "no", &error), -1);
	assert_int_equal(wlb_spool_pending(spool), 100);
	wlb_spool_close(spool, true);
	read_failure = 0;
	assert_unchanged(&error, strerror(ESTALE), before);
	free(before);
	snprintf(error.message, sizeof(error.message), "%s/refused/a-1.rank0.jsonl", folder);
	unlink(error.message);
}

#define TEST(name) cmocka_unit_test_teardown(name, repair)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_error_of_reading_changes_nothing),      TEST(an_interrupted_read_is_made_again),
		TEST(a_torn_line_is_not_cut_before_it_is_kept), TEST(a_failed_sync_is_made_again),
		TEST(a_batch_that_cannot_be_read_is_no_batch),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

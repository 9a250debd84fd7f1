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

static char folder[] = "/tmp/wlb-file-XXXXXX";

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) != NULL ? 0 : -1;
}

/* Fails when a test left something behind. */
static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

static const char *in_folder(char path[256], const char *name)
{
	snprintf(path, 256, "%s/%s", folder, name);
	return path;
}

static void what_is_written_is_read(void **state)
{
	char path[256], *data;
	size_t length;
	struct stat about;
	(void)state;
	in_folder(path, "a");
	assert_int_equal(wlb_file_write(path, "one\0two", 7, 0640, NULL), 0);
	assert_int_equal(wlb_file_read(path, 7, &data, &length, NULL), 0);
	assert_int_equal(length, 7);
	assert_memory_equal(data, "one\0two\0", 8);
	free(data);
	stat(path, &about);
	assert_int_equal(about.st_mode & 0777, 0640);
	unlink(path);
}

static void a_failed_write_leaves_the_old_file(void **state)
{
	char path[256], temporary[256], *data;
	struct wlb_error error;
	(void)state;
	in_folder(path, "folder");
	mkdir(path, 0700); /* cannot be replaced by a file */
	assert_int_equal(wlb_file_write(path, "new", 3, 0600, &error), -1);
	assert_non_null(strstr(error.message, path));
	rmdir(path);
	assert_int_equal(wlb_file_write(path, "old", 3, 0600, NULL), 0);
	in_folder(temporary, "is-not-there");
	assert_int_equal(wlb_file_commit(temporary, path, &error), -1);
	assert_int_equal(wlb_file_read(path, 100, &data, NULL, NULL), 0);
	assert_string_equal(data, "old");
	free(data);
	unlink(path);
}

static void reading_has_limits(void **state)
{
	char path[256], *data;
	struct wlb_error error;
	(void)state;
	in_folder(path, "a");
	assert_int_equal(wlb_file_read(path, 100, &data, NULL, &error), -1);
	assert_non_null(strstr(error.message, "No such file"));
	assert_int_equal(wlb_file_write(path, "12345", 5, 0600, NULL), 0);
	assert_int_equal(wlb_file_read(path, 4, &data, NULL, &error), -1);
	assert_non_null(strstr(error.message, "at most 4"));
	assert_int_equal(wlb_file_read(folder, 100, &data, NULL, &error), -1);
	assert_non_null(strstr(error.message, "not a regular file"));
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0); /* nobody writes it: this must not wait */
	assert_int_equal(wlb_file_read(path, 100, &data, NULL, &error), -1);
	assert_non_null(strstr(error.message, "not a regular file"));
	unlink(path);
}

static void folders_are_made_with_their_parents(void **state)
{
	char path[256], part[256];
	struct wlb_error error;
	(void)state;
	in_folder(path, "x/y/z/");
	assert_int_equal(wlb_dir_make(path, 0700, &error), 0);
	assert_int_equal(wlb_dir_make(path, 0700, &error), 0);
	rmdir(in_folder(part, "x/y/z"));
	assert_int_equal(wlb_file_write(in_folder(part, "x/y/z"), "", 0, 0600, NULL), 0);
	assert_int_equal(wlb_dir_make(in_folder(path, "x/y/z"), 0700, &error), -1);
	assert_int_equal(errno, ENOTDIR);
	errno = 0;
	assert_int_equal(wlb_dir_make(in_folder(path, "x/y/z/q"), 0700, &error), -1);
	assert_int_equal(errno, ENOTDIR);
	assert_int_equal(wlb_dir_make("", 0700, &error), -1);
	assert_int_equal(errno, ENAMETOOLONG);
	unlink(in_folder(part, "x/y/z"));
	rmdir(in_folder(part, "x/y"));
	rmdir(in_folder(part, "x"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(a_failed_write_leaves_the_old_file),
		cmocka_unit_test(reading_has_limits),
		cmocka_unit_test(folders_are_made_with_their_parents),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

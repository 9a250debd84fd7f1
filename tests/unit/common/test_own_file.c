/* What another account may have put in the place of a file makes nobody wait, and is not used. */
#include "common/own_file.h"

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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"

static char dir[] = "/tmp/wlb-own-file-XXXXXX";
static char path[64], other[64];

static const int all_flags[] = {O_RDONLY, O_RDWR, O_RDWR | O_CREAT, O_WRONLY | O_CREAT | O_APPEND};

enum { FLAGS = sizeof(all_flags) / sizeof(all_flags[0]), NOBODY = 65534, LOCK_MS = 30 };

static void write_file(const char *name)
{
	FILE *file = fopen(name, "w");
	assert_non_null(file);
	fputs("text", file);
	fclose(file);
}

static void assert_refused(int from)
{
	struct wlb_error error;
	for (int i = from; i < FLAGS; i++) {
		error.message[0] = '\0';
		assert_int_equal(wlb_own_file_open(path, all_flags[i], &error), -1);
		assert_non_null(strstr(error.message, path));
	}
}

static void an_own_file_is_opened(void **state)
{
	struct stat about;
	(void)state;
	int fd = wlb_own_file_open(path, O_RDWR | O_CREAT, NULL);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &about), 0);
	assert_int_equal(about.st_mode & 0777, 0600);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	for (int i = 0; i < FLAGS; i++) {
		fd = wlb_own_file_open(path, all_flags[i], NULL);
		assert_true(fd >= 0);
		close(fd);
	}
}

static void a_missing_file_is_missing(void **state)
{
	(void)state;
	errno = 0;
	assert_int_equal(wlb_own_file_open(path, O_RDWR, NULL), -1);
	assert_int_equal(errno, ENOENT);
}

static void a_pipe_makes_nobody_wait(void **state)
{
	(void)state;
	assert_int_equal(mkfifo(path, 0666), 0);
	assert_refused(0);
}

static void a_socket_is_no_file(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	(void)state;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	strcpy(address.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	assert_refused(0);
}

static void a_folder_is_no_file(void **state)
{
	(void)state;
	assert_int_equal(mkdir(path, 0700), 0);
	assert_refused(0);
}

static void a_link_is_not_followed(void **state)
{
	(void)state;
	write_file(other);
	assert_int_equal(symlink(other, path), 0);
	assert_refused(0);
	unlink(other);
	assert_refused(0);
	assert_int_equal(access(other, F_OK), -1);
}

static void a_file_of_another_name_is_not_written(void **state)
{
	(void)state;
	write_file(other);
	assert_int_equal(link(other, path), 0);
	assert_refused(2);
	int fd = wlb_own_file_open(path, O_RDONLY, NULL);
	assert_true(fd >= 0);
	close(fd);
}

static void a_file_of_another_account_is_not_used(void **state)
{
	struct wlb_error error;
	(void)state;
	write_file(path);
	if (chmod(path, 0666) != 0 || chown(path, NOBODY, NOBODY) != 0)
		skip(); /* not root */
	assert_refused(0);
	assert_int_equal(wlb_own_file_open(path, O_RDWR, &error), -1);
	assert_int_equal(errno, EINVAL);
	assert_non_null(strstr(error.message, "move it away"));
}

static void a_lock_has_a_bound(void **state)
{
	(void)state;
	int holder = wlb_own_file_open(path, O_RDWR | O_CREAT, NULL), fd = wlb_own_file_open(path, O_RDWR, NULL);
	assert_int_equal(flock(holder, LOCK_SH), 0);
	int64_t began_ms = wlb_clock_ms();
	assert_false(wlb_own_file_lock(fd, LOCK_MS));
	assert_true(wlb_clock_ms() - began_ms >= LOCK_MS);
	assert_false(wlb_own_file_lock(fd, 0));
	assert_int_equal(flock(holder, LOCK_UN), 0);
	assert_true(wlb_own_file_lock(fd, 0));
	assert_int_equal(flock(holder, LOCK_SH | LOCK_NB), -1);
	close(fd);
	close(holder);
}

static int make_dir(void **state)
{
	(void)state;
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/file", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	return 0;
}

static int remove_files(void **state)
{
	(void)state;
	if (unlink(path) != 0)
		rmdir(path);
	unlink(other);
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

#define TEST(name) cmocka_unit_test_teardown(name, remove_files)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_own_file_is_opened),
		TEST(a_missing_file_is_missing),
		TEST(a_pipe_makes_nobody_wait),
		TEST(a_socket_is_no_file),
		TEST(a_folder_is_no_file),
		TEST(a_link_is_not_followed),
		TEST(a_file_of_another_name_is_not_written),
		TEST(a_file_of_another_account_is_not_used),
		TEST(a_lock_has_a_bound),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

/* Runs of one job notice each other. The locks are of the open file, so that one process can take the part of two. */
#include "coordinator/wlb/run/other_runs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/wlb-other-runs-XXXXXX";
static char path[64];

static int open_of(uint32_t job_id)
{
	struct wlb_error error;
	int fd = wlb_run_others_open(dir, job_id, &error);
	assert_true(fd >= 0);
	return fd;
}

static void each_sees_the_others_of_its_job(void **state)
{
	(void)state;
	int first = open_of(12), of_another_job = open_of(13);
	assert_false(wlb_run_others_work(first));
	int second = open_of(12);
	assert_true(wlb_run_others_work(first) && wlb_run_others_work(second));
	/* Looking has changed nothing. */
	assert_true(wlb_run_others_work(first) && wlb_run_others_work(second));
	assert_false(wlb_run_others_work(of_another_job));
	/* One that has left still sees the other, which does not wait for it. */
	wlb_run_others_leave(first);
	assert_true(wlb_run_others_work(first) && !wlb_run_others_work(second));
	close(second);
	assert_false(wlb_run_others_work(first));
	close(first);
	close(of_another_job);
}

static void a_file_that_cannot_be_locked(void **state)
{
	struct wlb_error error;
	(void)state;
	unlink(path);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_int_equal(wlb_run_others_open(dir, 12, &error), -1);
	assert_non_null(strstr(error.message, "12.running: cannot be opened: "));
	assert_false(wlb_run_others_work(-1));
	wlb_run_others_leave(-1);
}

static int make_dir(void **state)
{
	(void)state;
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/12.running", dir);
	return 0;
}

static int remove_dir(void **state)
{
	char other[64];
	(void)state;
	snprintf(other, sizeof(other), "%s/13.running", dir);
	unlink(path);
	unlink(other);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_sees_the_others_of_its_job),
		cmocka_unit_test(a_file_that_cannot_be_locked),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

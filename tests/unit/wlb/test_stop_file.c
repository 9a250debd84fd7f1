/* The file by which a trainer that expects no signal is asked to save and stop. */
#include "coordinator/wlb/run/stop/stop_file.h"

#include <fcntl.h>
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

#include "coordinator/wlb/run/stop/save_and_requeue.h"

static char dir[] = "/tmp/wlb-stop-file-XXXXXX";
static char path[128], step_path[128];

static struct wlb_run_job job_in(const char *folder)
{
	struct wlb_run_job job = {.job_id = 12};
	snprintf(job.spool_dir, sizeof(job.spool_dir), "%s", folder);
	return job;
}

static const char *text_of_file(void)
{
	static char text[64];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t count = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[count > 0 ? count : 0] = '\0';
	return text;
}

static void make_answer(void)
{
	close(open(step_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

static void it_is_empty_until_the_trainer_is_asked(void **state)
{
	const struct wlb_run_job job = job_in(dir);
	struct wlb_error error;
	struct stat about;
	(void)state;
	assert_int_equal(wlb_run_stop_file_make(&job, "a", &error), 0);
	assert_int_equal(stat(path, &about), 0);
	assert_int_equal(about.st_size, 0);
	assert_int_equal(about.st_mode & 0777, 0600);
	assert_false(wlb_run_stop_file_is_read(&job, "a"));
	make_answer();
	assert_true(wlb_run_stop_file_is_read(&job, "a"));
	assert_false(wlb_run_stop_file_is_read(&job, "b"));
	assert_int_equal(wlb_run_stop_file_ask(&job, "a", &error), 0);
	assert_int_equal(wlb_run_stop_file_ask(&job, "a", &error), 0);
	assert_string_equal(text_of_file(), "stop\n");
	wlb_run_stop_file_remove(&job, "a");
	assert_true(access(path, F_OK) != 0 && access(step_path, F_OK) != 0);
}

static void what_is_no_file_of_this_account_is_left_alone(void **state)
{
	const struct wlb_run_job job = job_in(dir), nowhere = job_in(""), relative = job_in("spool");
	struct wlb_error error;
	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(wlb_run_stop_file_make(&job, "a", &error), -1);
	assert_int_equal(wlb_run_stop_file_ask(&job, "a", &error), -1);
	assert_int_equal(symlink("/dev/null", step_path), 0);
	assert_false(wlb_run_stop_file_is_read(&job, "a"));
	wlb_run_stop_file_remove(&job, "a");
	assert_int_equal(wlb_run_stop_file_make(&nowhere, "a", &error), -1);
	assert_int_equal(wlb_run_stop_file_make(&relative, "a", &error), -1);
	assert_non_null(strstr(error.message, "not an absolute path"));
	assert_false(wlb_run_stop_file_is_read(&nowhere, "a"));
	wlb_run_stop_file_remove(&nowhere, "a");
}

static void at_sigusr1_a_trainer_that_asks_is_asked_by_it(void **state)
{
	static char *command[] = {"train", NULL};
	struct wlb_run run = {
		.job = job_in(dir), .options.command = command, .progress.fd = -1, .journal.fd = -1};
	struct wlb_attempt attempt = {.id = "a", .number = 1};
	struct wlb_error error;
	(void)state;
	assert_int_equal(wlb_run_stop_file_make(&run.job, "a", &error), 0);
	assert_false(wlb_run_ask_for_user(&run, &attempt, NULL)); /* the signal is for its tasks */
	assert_string_equal(text_of_file(), "");
	make_answer();
	assert_true(wlb_run_ask_for_user(&run, &attempt, NULL));
	assert_int_equal(attempt.stop, WLB_RUN_STOP_USER);
	assert_string_equal(text_of_file(), "stop\n");
	assert_true(wlb_run_ask_for_user(&run, &attempt, NULL));
	wlb_run_stop_file_remove(&run.job, "a");
}

static int make_dir(void **state)
{
	(void)state;
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/stop-12-a", dir);
	snprintf(step_path, sizeof(step_path), "%s/stop-12-a.step", dir);
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_empty_until_the_trainer_is_asked),
		cmocka_unit_test(what_is_no_file_of_this_account_is_left_alone),
		cmocka_unit_test(at_sigusr1_a_trainer_that_asks_is_asked_by_it),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

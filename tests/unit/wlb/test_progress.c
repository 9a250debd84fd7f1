#include "coordinator/wlb/run/state/progress.h"

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

static char dir[] = "/tmp/wlb-progress-XXXXXX";
static char path[64];
static int64_t now_ms = 1;

static void append(const char *text)
{
	FILE *file = fopen(path, "a");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void close_to(double a, double b)
{
	assert_true(a > b - 1e-9 && a < b + 1e-9);
}

static void reads_while_the_spool_grows(void **state)
{
	struct wlb_run_progress progress = {.fd = -1, .saved_step = -1};
	char filler[8192];
	(void)state;
	wlb_run_progress_read(&progress, dir, "a", now_ms += 1000);
	assert_int_equal(progress.fd, -1);
	append("{\"run\":\"12\"}\n");
	append("{\"seq\":1,\"time\":1.5,\"type\":\"step\",\"data\":{\"step\":1,\"step_time_s\":2.5}}\n");
	append("{\"seq\":2,\"time\":2.5,\"type\":\"checkpoint\",\"data\":{\"step\":1,\"dura");
	wlb_run_progress_read(&progress, dir, "a", now_ms += 1000);
	close_to(wlb_run_longest_s(&progress.steps), 2.5);
	assert_int_equal(progress.saved_step, -1);
	append("tion_s\":7.5}}\n{\"seq\":3,\"type\":\"step\",\"data\":{\"step\":2,\"step_time_s\":0.5}}\n");
	wlb_run_progress_read(&progress, dir, "a", now_ms += 1000);
	close_to(wlb_run_longest_s(&progress.saves), 7.5);
	close_to(wlb_run_longest_s(&progress.steps), 2.5);
	assert_int_equal(progress.saved_step, 1);
	/* A record that is longer than any step's, and bytes that are no record. */
	memset(filler, 'x', sizeof(filler) - 1);
	filler[sizeof(filler) - 1] = '\0';
	append(filler);
	append("\nnonsense\n{\"type\":7}\n{\"type\":\"step\",\"data\":{\"step_time_s\":null}}\n");
	/* Delivered and removed: what was written before is still read. */
	append("{\"seq\":9,\"type\":\"checkpoint\",\"data\":{\"step\":412,\"duration_s\":3}}\n");
	unlink(path);
	wlb_run_progress_read(&progress, dir, "a", now_ms += 1000);
	assert_int_equal(progress.saved_step, 412);
	close_to(wlb_run_longest_s(&progress.saves), 7.5);
	wlb_run_progress_reset(&progress);
	assert_int_equal(progress.saved_step, -1);
	assert_int_equal(progress.fd, -1);
	close_to(wlb_run_longest_s(&progress.saves), 7.5);
}

/* The job was suspended for 20 hours in the save of step 2, and stood still with this process. */
static void leaves_out_suspensions(void **state)
{
	struct wlb_run_progress progress = {.fd = -1, .saved_step = -1};
	(void)state;
	append("{\"type\":\"step\",\"data\":{\"step\":1,\"step_time_s\":2.5}}\n");
	wlb_run_progress_read(&progress, dir, "a", now_ms += 1000);
	append("{\"type\":\"step\",\"data\":{\"step\":2,\"step_time_s\":3}}\n");
	wlb_run_progress_read(&progress, dir, "a", now_ms += 72000000);
	append("{\"type\":\"checkpoint\",\"data\":{\"step\":2,\"duration_s\":72004}}\n");
	append("{\"type\":\"step\",\"data\":{\"step\":3,\"step_time_s\":72006.5}}\n");
	wlb_run_progress_read(&progress, dir, "a", now_ms += 1000);
	close_to(wlb_run_longest_s(&progress.saves), 4.0);
	close_to(wlb_run_longest_s(&progress.steps), 6.5);
	/* One that takes long while this process goes on is a long step. */
	append("{\"type\":\"step\",\"data\":{\"step\":4,\"step_time_s\":90}}\n");
	wlb_run_progress_read(&progress, dir, "a", now_ms += 1000);
	close_to(wlb_run_longest_s(&progress.steps), 90.0);
	unlink(path);
	wlb_run_progress_reset(&progress);
}

static void what_was_long_once_is_forgotten(void **state)
{
	struct wlb_run_progress progress = {.fd = -1, .saved_step = -1};
	(void)state;
	append("{\"type\":\"step\",\"data\":{\"step\":1,\"step_time_s\":600}}\n");
	append("{\"type\":\"checkpoint\",\"data\":{\"step\":1,\"duration_s\":1200}}\n");
	for (int i = 0; i < 3; i++)
		append("{\"type\":\"checkpoint\",\"data\":{\"step\":2,\"duration_s\":7}}\n");
	for (int i = 0; i < 198; i++)
		append("{\"type\":\"step\",\"data\":{\"step\":2,\"step_time_s\":2}}\n");
	wlb_run_progress_read(&progress, dir, "a", now_ms += 1000);
	close_to(wlb_run_longest_s(&progress.saves), 1200);
	close_to(wlb_run_longest_s(&progress.steps), 600);
	for (int i = 0; i < 4; i++)
		append("{\"type\":\"checkpoint\",\"data\":{\"step\":2,\"duration_s\":5}}\n");
	append("{\"type\":\"step\",\"data\":{\"step\":200,\"step_time_s\":3}}\n");
	wlb_run_progress_read(&progress, dir, "a", now_ms += 1000);
	close_to(wlb_run_longest_s(&progress.saves), 5);
	close_to(wlb_run_longest_s(&progress.steps), 3);
	unlink(path);
	wlb_run_progress_reset(&progress);
}

static void a_pipe_in_the_place_of_the_spool_makes_nobody_wait(void **state)
{
	struct wlb_run_progress progress = {.fd = -1, .saved_step = -1};
	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	wlb_run_progress_read(&progress, dir, "a", now_ms += 1000);
	assert_int_equal(progress.fd, -1);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(reads_while_the_spool_grows),
	                                   cmocka_unit_test(leaves_out_suspensions),
	                                   cmocka_unit_test(what_was_long_once_is_forgotten),
	                                   cmocka_unit_test(a_pipe_in_the_place_of_the_spool_makes_nobody_wait)};
	if (mkdtemp(dir) == NULL)
		return 1;
	snprintf(path, sizeof(path), "%s/a.rank0.jsonl", dir);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	rmdir(dir);
	return failed;
}

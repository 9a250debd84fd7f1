/* The error that the user sees at an attempt's end. */
#include "coordinator/wlb/run/attempt/first_error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char printed[1200], dir[] = "/tmp/wlb-first-error-XXXXXX";
static struct wlb_run run = {.job = {.job_id = 7}};

void __wrap_wlb_run_print(const char *format, ...);
void __wrap_wlb_run_print(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(printed, sizeof(printed), format, args);
	va_end(args);
}

static void find(struct wlb_attempt *attempt, const char *text)
{
	static struct wlb_output_tail tail;
	memset(&tail, 0, sizeof(tail));
	printed[0] = '\0';
	attempt->number = 2;
	wlb_output_tail_add(&tail, text, strlen(text));
	snprintf(attempt->id, sizeof(attempt->id), "an-id");
	wlb_run_find_error(&run, attempt, &tail);
}

static const char error[] = "[rank3]: Traceback (most recent call last):\n[rank3]: ValueError: loss is nan\n";

static void the_error_is_printed(void **state)
{
	struct wlb_attempt attempt = {.exit_code = 1};
	(void)state;
	find(&attempt, error);
	assert_string_equal(printed, "attempt 2: the first error of rank 3: ValueError: loss is nan");
	assert_string_equal(attempt.error.text, "ValueError: loss is nan");
	find(&attempt,
	     "Traceback (most recent call last):\nKeyError: 'x'\n\nDuring handling of the above exception, another "
	     "exception occurred:\n\nTraceback (most recent call last):\nValueError: bad\n");
	assert_string_equal(printed,
	                    "attempt 2: the first error of its ranks: ValueError: bad (because of KeyError: 'x')");
}

static void nothing_is_printed(void **state)
{
	struct wlb_attempt attempts[] = {{.exit_code = 0},
	                                 {.exit_code = 1, .ended_by = WLB_ENDED_BY_CANCEL},
	                                 {.exit_code = 85, .stopped = true},
	                                 {.exit_code = 2, .is_refused = true}};
	struct wlb_attempt failed = {.exit_code = 1};
	(void)state;
	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
		find(&attempts[i], error);
		assert_string_equal(printed, "");
		assert_false(attempts[i].error.known);
	}
	find(&failed, "step 3\n");
	assert_string_equal(printed, "");
	find(&failed, "Traceback (most recent call last):\nRuntimeError: Connection closed by peer [n1]:5\n");
	assert_string_equal(printed, "");
	assert_true(failed.error.is_consequence);
}

static void write_file(const char *name, const char *text)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static bool is_there(const char *name)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return access(path, F_OK) == 0;
}

static void the_error_file_of_the_first_task(void **state)
{
	struct wlb_attempt attempt = {.exit_code = 1};
	char begin[PATH_MAX];
	(void)state;
	wlb_run_error_files(&run.job, "an-id", begin, sizeof(begin));
	assert_string_equal(begin + strlen(dir), "/error-7-an-id-");
	write_file("error-7-an-id-3.json", "{\"message\": {\"message\": \"ValueError: three\"}}");
	write_file("error-7-an-id-4.json", "{\"message\": {\"message\": \"ValueError: four\"}}");
	write_file("error-7-other-3.json", "");
	attempt.first_exit = (struct wlb_first_exit){.known = true, .rank = 3};
	find(&attempt, "Traceback (most recent call last):\nRuntimeError: Connection closed by peer [n1]:5\n");
	assert_string_equal(printed, "attempt 2: the first error of its ranks: ValueError: three");
	assert_false(is_there("error-7-an-id-3.json") || is_there("error-7-an-id-4.json"));
	assert_true(is_there("error-7-other-3.json"));
}

static void words_of_its_own(void **state)
{
	static const char text[] = "train: no data\nsrun: error: n2: task 3: Exited with exit code 1\n";
	struct wlb_attempt attempt = {.exit_code = 1, .first_exit = {.known = true, .rank = 3}};
	(void)state;
	find(&attempt, text);
	assert_string_equal(attempt.error.text, "last line of stderr: train: no data");
	assert_string_equal(printed, ""); /* the line is among the last that the user has seen */
	attempt = (struct wlb_attempt){.exit_code = 137, .first_exit = {.known = true, .rank = 3, .signal = 9}};
	find(&attempt, text);
	assert_string_equal(printed, "");
}

static void launchers_write_much_after_it(void **state)
{
	static char text[100000] = "Traceback (most recent call last):\nRuntimeError: of rank 3\n";
	struct wlb_attempt attempt = {.exit_code = 1, .first_exit = {.known = true, .rank = 3}};
	(void)state;
	for (size_t at = strlen(text); at + 32 < sizeof(text); at += strlen(text + at))
		snprintf(text + at, sizeof(text) - at, "W1129 12:00:00 launcher: x\n");
	find(&attempt, text);
	assert_non_null(strstr(printed, "RuntimeError: of rank 3"));
}

static void a_path_that_is_too_long_is_none(void **state)
{
	char begin[24];
	(void)state;
	wlb_run_error_files(&run.job, "an-id", begin, sizeof(begin));
	assert_string_equal(begin, "");
}

static int make_folder(void **state)
{
	(void)state;
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(run.job.spool_dir, sizeof(run.job.spool_dir), "%s", dir);
	return 0;
}

static int remove_folder(void **state)
{
	char path[128];
	(void)state;
	snprintf(path, sizeof(path), "%s/error-7-other-3.json", dir);
	unlink(path);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_error_is_printed),
		cmocka_unit_test(nothing_is_printed),
		cmocka_unit_test(the_error_file_of_the_first_task),
		cmocka_unit_test(words_of_its_own),
		cmocka_unit_test(launchers_write_much_after_it),
		cmocka_unit_test(a_path_that_is_too_long_is_none),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

#include "coordinator/wlbd/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Calls `writes` and copies its output on stderr to `text`. */
static void capture_stderr(void (*writes)(void), char *text, size_t size)
{
	FILE *temporary = tmpfile();
	int before = dup(STDERR_FILENO);
	fflush(stderr);
	dup2(fileno(temporary), STDERR_FILENO);
	writes();
	fflush(stderr);
	dup2(before, STDERR_FILENO);
	close(before);
	rewind(temporary);
	text[fread(text, 1, size - 1, temporary)] = '\0';
	fclose(temporary);
}

static int count_lines(const char *text, const char *word)
{
	int count = 0;
	for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word))
		count++;
	return count;
}

static void log_often(void)
{
	for (int i = 0; i < 1000; i++)
		wlbd_log_limited(WLBD_LOG_WARNING, WLBD_LIMIT_HTTP, "client %d did it again", i);
	wlbd_log_limited(WLBD_LOG_WARNING, WLBD_LIMIT_END, "another kind");
	wlbd_log_limited(WLBD_LOG_DEBUG, WLBD_LIMIT_MUNGE, "below the level");
	wlbd_log(WLBD_LOG_WARNING, "what is said once");
}

static void a_kind_is_logged_ten_times_at_most(void **state)
{
	static char text[65536];
	(void)state;
	capture_stderr(log_often, text, sizeof(text));
	assert_int_equal(count_lines(text, "did it again\n"), 10);
	assert_int_equal(count_lines(text, "another kind\n"), 1);
	assert_int_equal(count_lines(text, "below the level"), 0);
	assert_int_equal(count_lines(text, "what is said once\n"), 1);
}

static void log_what_a_client_sent(void)
{
	wlbd_log(WLBD_LOG_WARNING, "run %s", "1\n2026-11-26 00:00:00.000 info: forged\x1b[2J\x7f \xc3\xa4");
}

static void a_client_cannot_forge_a_line(void **state)
{
	char text[512];
	(void)state;
	capture_stderr(log_what_a_client_sent, text, sizeof(text));
	assert_int_equal(count_lines(text, "\n"), 1);
	assert_non_null(strstr(text, "run 1 2026-11-26 00:00:00.000 info: forged [2J  \xc3\xa4\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_kind_is_logged_ten_times_at_most),
	                                   cmocka_unit_test(a_client_cannot_forge_a_line)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

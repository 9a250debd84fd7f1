/* What Python's hook notes on a node is copied to where `wlb run` reads it. */
#include "coordinator/agent/hook_copy.h"

#include <fcntl.h>
#include <limits.h>
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

#include "common/clock.h"

enum { LATE_MS = 10000 };

static char folder[] = "/tmp/wlb-hook-copy-XXXXXX";
static char from[PATH_MAX], to[PATH_MAX];

static void append(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);
	assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static const char *text_of(const char *path)
{
	static char text[256];
	FILE *file = fopen(path, "r");
	size_t length = file != NULL ? fread(text, 1, sizeof(text) - 1, file) : 0;
	text[length] = '\0';
	if (file != NULL)
		fclose(file);
	return text;
}

static void wait_for_copy(const char *text)
{
	int64_t until_ms = wlb_clock_ms() + LATE_MS;
	while (strcmp(text_of(to), text) != 0 && wlb_clock_left_ms(until_ms) > 0)
		wlb_clock_sleep_ms(5);
	assert_string_equal(text_of(to), text);
}

static int set_up(void **state)
{
	(void)state;
	if (mkdtemp(folder) == NULL)
		return -1;
	snprintf(from, sizeof(from), "%s/from", folder);
	snprintf(to, sizeof(to), "%s/to", folder);
	setenv("WLB_HOOK_FILE", from, 1);
	setenv("WLB_HOOK_COPY", to, 1);
	setenv("WLB_HOOK_NODE", "n2", 1);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(to);
	unlink(from);
	return rmdir(folder);
}

static void lines_are_copied_and_the_file_is_removed(void **state)
{
	struct wlb_agent_hook_copy copy;
	(void)state;
	append(to, "");
	wlb_agent_hook_copy_begin(&copy, "n2");
	assert_true(copy.pid > 0);
	append(from, "{\"step\": 1}\n");
	wait_for_copy("{\"step\": 1}\n");
	append(from, "{\"step\": 2}\n");
	wlb_agent_hook_copy_end(&copy);
	assert_string_equal(text_of(to), "{\"step\": 1}\n{\"step\": 2}\n");
	assert_int_equal(access(from, F_OK), -1);
}

/* `wlb run` has gone, and removed the copy: it is not made again. */
static void a_copy_that_is_gone_is_not_made(void **state)
{
	struct wlb_agent_hook_copy copy;
	(void)state;
	unlink(to);
	append(from, "{\"step\": 1}\n");
	wlb_agent_hook_copy_begin(&copy, "n2");
	wlb_agent_hook_copy_end(&copy);
	assert_int_equal(access(to, F_OK), -1);
	assert_int_equal(access(from, F_OK), -1);
}

static void another_node_copies_nothing(void **state)
{
	struct wlb_agent_hook_copy copy;
	(void)state;
	wlb_agent_hook_copy_begin(&copy, "n1");
	assert_int_equal(copy.pid, 0);
	unsetenv("WLB_HOOK_COPY");
	wlb_agent_hook_copy_begin(&copy, "n2");
	assert_int_equal(copy.pid, 0);
	wlb_agent_hook_copy_end(&copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_copied_and_the_file_is_removed),
		cmocka_unit_test(a_copy_that_is_gone_is_not_made),
		cmocka_unit_test(another_node_copies_nothing),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}

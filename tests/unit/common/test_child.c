/* How a child ended is said, or that nobody can tell; an end that is not known is no success. */
#include "common/child.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"

enum { LONG_MS = 20000, SHORT_MS = 30 };

/* Starts a child that ends with this code; -1: that runs on. */
static pid_t start(int code)
{
	pid_t child = fork();
	if (child == 0 && code >= 0)
		_exit(code);
	if (child == 0)
		for (;;)
			pause();
	return child;
}

static void an_exit_code_is_read(void **state)
{
	int status;
	(void)state;
	for (int code = 0; code < 256; code += 85) {
		assert_int_equal(wlb_child_wait(start(code), LONG_MS, &status), 1);
		assert_int_equal(wlb_child_code(status), code);
	}
}

static void a_signal_is_read(void **state)
{
	int status;
	(void)state;
	pid_t child = start(-1);
	kill(child, SIGKILL);
	assert_int_equal(wlb_child_wait(child, LONG_MS, &status), 1);
	assert_int_equal(wlb_child_code(status), 128 + SIGKILL);
}

static void the_wait_has_a_bound(void **state)
{
	int status = 0;
	(void)state;
	pid_t child = start(-1);
	int64_t began_ms = wlb_clock_ms();
	assert_int_equal(wlb_child_wait(child, SHORT_MS, &status), 0);
	assert_true(wlb_clock_ms() - began_ms >= SHORT_MS);
	assert_int_not_equal(wlb_child_code(status), 0);
	assert_int_equal(wlb_child_wait(child, 0, &status), 0);
	kill(child, SIGKILL);
	assert_int_equal(wlb_child_wait(child, LONG_MS, &status), 1);
}

static void an_end_that_nobody_knows_is_no_success(void **state)
{
	int status = 0;
	(void)state;
	pid_t child = start(0);
	assert_int_equal(wlb_child_wait(child, LONG_MS, &status), 1);
	assert_int_equal(wlb_child_wait(child, LONG_MS, &status), -1); /* it was reaped before */
	assert_int_equal(wlb_child_code(status), 255);
	signal(SIGCHLD, SIG_IGN);
	status = 0;
	assert_int_equal(wlb_child_wait(start(0), LONG_MS, &status), -1);
	assert_int_equal(wlb_child_code(status), 255);
	signal(SIGCHLD, SIG_DFL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_exit_code_is_read),
		cmocka_unit_test(a_signal_is_read),
		cmocka_unit_test(the_wait_has_a_bound),
		cmocka_unit_test(an_end_that_nobody_knows_is_no_success),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

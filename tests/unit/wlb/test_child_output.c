/* A program that `wlb doctor` runs holds it no longer than it may, whatever it writes. The time passes with the looks
 * at the clock. */
#include "coordinator/wlb/child_output.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { LOOKS = 1000, LOOKS_ENOUGH = 100000 };

static int looks; /* until the time is over */
static int looked;

int __wrap_wlb_clock_left_ms(int64_t deadline_ms);
int __wrap_wlb_clock_left_ms(int64_t deadline_ms)
{
	(void)deadline_ms;
	assert_true(++looked < 2 * LOOKS_ENOUGH);
	return looks-- > 0;
}

static int run(const char *script, int until_looks, char *output, size_t size)
{
	char *argv[] = {"sh", "-c", (char *)script, NULL};
	looks = until_looks;
	looked = 0;
	return wlb_output_of_program(argv, output, size);
}

static void the_output_is_read(void **state)
{
	char output[64];
	(void)state;
	assert_int_equal(run("echo one; echo two >&2; exit 3", LOOKS_ENOUGH, output, sizeof(output)), 3);
	assert_string_equal(output, "one\ntwo\n");
}

static void one_that_writes_without_end_is_ended(void **state)
{
	char output[64];
	(void)state;
	assert_int_equal(run("exec yes", LOOKS, output, sizeof(output)), -1);
	assert_int_equal(strncmp(output, "y\ny\n", 4), 0);
	assert_int_equal(strlen(output), sizeof(output) - 1);
}

static void one_that_says_nothing_is_ended(void **state)
{
	char output[64];
	(void)state;
	assert_int_equal(run("exec sleep 600", LOOKS, output, sizeof(output)), -1);
}

static void one_that_closes_its_output_and_goes_on_is_ended(void **state)
{
	char output[64];
	(void)state;
	assert_int_equal(run("echo begun; exec sleep 600 >&- 2>&-", LOOKS, output, sizeof(output)), -1);
	assert_string_equal(output, "begun\n");
}

static void an_end_that_is_not_known_is_no_success(void **state)
{
	char output[64];
	(void)state;
	signal(SIGCHLD, SIG_IGN);
	assert_int_equal(run("exit 0", LOOKS_ENOUGH, output, sizeof(output)), -1);
	signal(SIGCHLD, SIG_DFL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_output_is_read),
		cmocka_unit_test(one_that_writes_without_end_is_ended),
		cmocka_unit_test(one_that_says_nothing_is_ended),
		cmocka_unit_test(one_that_closes_its_output_and_goes_on_is_ended),
		cmocka_unit_test(an_end_that_is_not_known_is_no_success),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

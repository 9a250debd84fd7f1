/* srun's output reaches our stderr whole and in order, however slowly it is read there. */
#include "coordinator/wlb/run/attempt/srun_output.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int our_stderr, srun_ends[2], our_ends[2];

/* Makes our stderr a pipe whose ends do not block, as another program may have left it. */
static int begin(void **state)
{
	(void)state;
	our_stderr = dup(STDERR_FILENO);
	if (our_stderr < 0 || pipe(srun_ends) != 0 || pipe2(our_ends, O_NONBLOCK) != 0)
		return -1;
	return dup2(our_ends[1], STDERR_FILENO) == STDERR_FILENO && close(our_ends[1]) == 0 ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	if (our_ends[0] >= 0)
		close(our_ends[0]);
	return dup2(our_stderr, STDERR_FILENO) == STDERR_FILENO && close(our_stderr) == 0 ? 0 : -1;
}

static void expect_read(const char *text)
{
	char bytes[64] = "";
	assert_int_equal(read(our_ends[0], bytes, sizeof(bytes)), strlen(text));
	assert_memory_equal(bytes, text, strlen(text));
}

static void what_srun_writes_is_passed_on(void **state)
{
	struct wlb_srun_output output = {.fd = srun_ends[0]};
	(void)state;
	assert_int_equal(wlb_srun_output_side(&output).fd, srun_ends[0]);
	assert_int_equal(write(srun_ends[1], "one\n", 4), 4);
	assert_int_equal(wlb_srun_output_pass(&output), 4);
	assert_memory_equal(output.bytes, "one\n", 4);
	assert_int_equal(wlb_srun_output_side(&output).fd, STDERR_FILENO);
	assert_int_equal(wlb_srun_output_pass(&output), 0);
	expect_read("one\n");
	assert_int_equal(wlb_srun_output_side(&output).fd, srun_ends[0]);
	close(srun_ends[1]);
	assert_int_equal(wlb_srun_output_pass(&output), 0);
	assert_int_equal(output.fd, -1);
}

static void what_our_stderr_does_not_take_waits(void **state)
{
	static char filler[65536];
	struct wlb_srun_output output = {.fd = srun_ends[0]};
	(void)state;
	while (write(STDERR_FILENO, filler, sizeof(filler)) > 0)
		;
	assert_int_equal(write(srun_ends[1], "two\n", 4), 4);
	assert_int_equal(wlb_srun_output_pass(&output), 4);
	assert_int_equal(wlb_srun_output_pass(&output), 0);
	assert_int_equal(output.count, 4);
	while (read(our_ends[0], filler, sizeof(filler)) > 0)
		;
	assert_int_equal(wlb_srun_output_pass(&output), 0);
	assert_int_equal(output.count, 0);
	expect_read("two\n");
	close(srun_ends[0]);
	close(srun_ends[1]);
}

static void output_that_nobody_reads_is_lost(void **state)
{
	struct wlb_srun_output output = {.fd = srun_ends[0]};
	(void)state;
	signal(SIGPIPE, SIG_IGN); /* as `wlb run` does */
	close(our_ends[0]);
	our_ends[0] = -1;
	assert_int_equal(write(srun_ends[1], "three\n", 6), 6);
	assert_int_equal(wlb_srun_output_pass(&output), 6);
	assert_int_equal(wlb_srun_output_pass(&output), 0);
	assert_int_equal(output.count, 0);
	close(srun_ends[0]);
	close(srun_ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_srun_writes_is_passed_on, begin, end),
		cmocka_unit_test_setup_teardown(what_our_stderr_does_not_take_waits, begin, end),
		cmocka_unit_test_setup_teardown(output_that_nobody_reads_is_lost, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

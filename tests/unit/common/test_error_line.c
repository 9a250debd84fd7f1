/* Why processes ended, from what they really wrote to stderr (tests/fixtures/stderr). */
#include "common/error_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static char bytes[65536];

static size_t load(const char *name)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/%s", WLB_TEST_STDERR, name);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	size_t count = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	return count;
}

static void check(const struct wlb_error_line *found, const char *text, const char *cause, int rank)
{
	assert_true(found->known);
	assert_string_equal(found->text, text);
	assert_string_equal(found->cause, cause);
	assert_int_equal(found->rank, rank);
	assert_false(found->is_consequence);
}

static void real_outputs(void **state)
{
	static const struct {
		const char *file, *text, *cause;
		int rank;
	} cases[] = {
		{"torchrun_recorded.txt", "ValueError: loss is nan at step 17", "KeyError: 'x'", 1},
		{"torchrun.txt", "RuntimeError: no record here", "", 1},
		{"peers.txt", "RuntimeError: loss is nan at step 17", "", 2},
		{"dataloader.txt", "OSError: [Errno 5] Input/output error: 'shard-3.bin'",
	         "OSError: Caught OSError in DataLoader worker process 0.", -1},
		{"spawn.txt", "ValueError: bad rank", "", -1},
		{"handled.txt", "SystemError: cannot go on",
	         "FileNotFoundError: [Errno 2] No such file or directory: '/no/such/file'", -1},
		{"group.txt", "ExceptionGroup: two of them (2 sub-exceptions)", "", -1},
		{"fatal.txt", "Fatal Python error: Segmentation fault", "", -1},
		{"terminate.txt", "std::runtime_error: no device", "", -1},
		{"assertion.txt", "train_assert: ass.c:2: main: Assertion `c > 5 && \"size\"' failed.", "", -1},
		{"mpi_abort.txt", "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD with errorcode 7.",
	         "", 1},
		{"mpi_error.txt", "An error occurred in MPI_Recv: MPI_ERR_TRUNCATE: message truncated", "", -1},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wlb_error_line found;
		wlb_error_line_find(bytes, load(cases[i].file), &found);
		if (!found.known || strcmp(found.text, cases[i].text) != 0)
			fail_msg("%s: %s", cases[i].file, found.text);
		check(&found, cases[i].text, cases[i].cause, cases[i].rank);
	}
}

static void find_in(const char *text, struct wlb_error_line *found)
{
	wlb_error_line_find(text, strlen(text), found);
}

static void lines_of_several_processes(void **state)
{
	struct wlb_error_line found;
	(void)state;
	find_in("Traceback (most recent call last):\nTraceback (most recent call last):\n  File \"t.py\", line 3, in "
	        "f\n"
	        "INFO: step 3\nWARNING:root:slow\n  File \"t.py\", line 3, in f\nOSError: full\nOSError: full\n",
	        &found);
	check(&found, "OSError: full", "", -1);
	find_in("3: Traceback (most recent call last):\n1: Traceback (most recent call last):\n1:   File \"t.py\"\n"
	        "3:   File \"t.py\"\n1: ValueError: one\n3: ValueError: three\n",
	        &found);
	check(&found, "ValueError: one", "", 1);
	find_in("Traceback (most recent call last):\nsrun: error: n1: task 0: Exited with exit code 1\n"
	        "slurmstepd: error: *** STEP 5.0 ON n1 CANCELLED ***\n  File \"t.py\", line 3, in f\nValueError: 42\n",
	        &found);
	check(&found, "ValueError: 42", "", -1);
}

static void what_is_not_printable(void **state)
{
	struct wlb_error_line found;
	(void)state;
	find_in("step 3\rTraceback (most recent call last):\r\n  \x1b[35mFile\x1b[0m x\r\n"
	        "\x1b[1;35mValueError\x1b[0m: bad\x07 \xff\r\n",
	        &found);
	check(&found, "ValueError: bad  \xef\xbf\xbd", "", -1);
}

static void consequences_alone(void **state)
{
	struct wlb_error_line found;
	(void)state;
	find_in("Traceback (most recent call last):\n  File \"t.py\", line 3, in f\nRuntimeError: Connection closed by "
	        "peer "
	        "[n1]:5\n",
	        &found);
	assert_true(found.known && found.is_consequence);
	find_in("Root Cause (first observed failure):\n[0]:\n  rank      : 5 (local_rank: 1)\n  exitcode  : -9 (pid: "
	        "7) "
	        "(SIGKILL)\n  traceback : Signal 9 (SIGKILL) received by PID 7\n=====\n",
	        &found);
	check(&found, "Signal 9 (SIGKILL) received by PID 7", "", 5);
}

static void ranks_below_zero_are_none(void **state)
{
	static const char *const texts[] = {
		"[rank-3]: Traceback (most recent call last):\n[rank-3]: ValueError: x\n",
		"MPI_ABORT was invoked on rank -5 in communicator\n",
		"Root Cause (first observed failure):\n  rank : -7 (\n  exitcode : 1\n  traceback : Signal 9\n",
	};
	struct wlb_error_line found;
	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		find_in(texts[i], &found);
		assert_true(found.known);
		assert_int_equal(found.rank, -1);
	}
}

static void a_syntax_error(void **state)
{
	struct wlb_error_line found;
	(void)state;
	find_in("  File \"t.py\", line 1\n    x = = 3\n        ^\nSyntaxError: invalid syntax\n", &found);
	check(&found, "SyntaxError: invalid syntax", "", -1);
}

static void no_error(void **state)
{
	static const char *const texts[] = {"",
	                                    "\n",
	                                    "ValueError: not in a traceback\n",
	                                    "Traceback (most recent call last):\n",
	                                    "Traceback (most recent call last):\n  File \"t.py\"\n    ValueError: x\n",
	                                    "  what():  alone\n",
	                                    "with errorcode 7.\n"};
	struct wlb_error_line found;
	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		find_in(texts[i], &found);
		if (found.known)
			fail_msg("%s: %s", texts[i], found.text);
		assert_int_equal(found.rank, -1);
	}
}

#define RULE "--------------------------------------------------------------------------\n"

static void last_lines(void **state)
{
	static const struct {
		const char *text, *last;
		int rank;
	} cases[] = {
		{"step 7\ntrain: cannot read shard 3\n-----\nsrun: error: n2: task 3: Exited with exit code "
	         "1\nkilled\n",
	         "last line of stderr: train: cannot read shard 3", -1},
		{"3: no \x1b[31mdata\nslurmstepd: error: *** STEP 4.0 ON n1 CANCELLED ***\nsrun: error: n2: tasks 3-4: "
	         "Exited "
	         "with exit code 1",
	         "last line of stderr: 3: no data", 3},
		{"train: no data\n" RULE "WARNING: Open MPI failed\n  Peer host:  n2\n" RULE RULE
	         "An MPI peer has gone\n" RULE "recv: Connection reset by peer\nslurmstepd-n1: error: *** STEP "
	         "***\nsrun: error: n2: task 3: Exited\n",
	         "last line of stderr: train: no data", -1},
		{"no end\n", NULL, -1},
		{"srun: error: n2: task 3: Exited with exit code 1\nlate\n", NULL, -1},
		{"", NULL, -1},
	};
	struct wlb_error_line found;
	char whole[2000];
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		wlb_error_line_last(cases[i].text, strlen(cases[i].text), &found);
		assert_int_equal(found.known, cases[i].last != NULL);
		assert_string_equal(found.text, cases[i].last != NULL ? cases[i].last : "");
		assert_int_equal(found.rank, cases[i].rank);
	}
	memset(whole, 'x', sizeof(whole));
	memcpy(whole + 1900, "\nsrun: error: n2: task 3: Killed\n", 34);
	wlb_error_line_last(whole, sizeof(whole), &found);
	assert_true(found.known);
	assert_in_range(strlen(found.text), 400, sizeof(found.text) - 1);
}

static void error_files(void **state)
{
	static const char *const none[] = {"", "{}", "[]", "{\"message\":{}}", "{\"message\":\"\"}", "{\"message\":7}"};
	static const char text[] = "{\"message\": \"Signal 11 (SIGSEGV) received by PID 7\"}";
	struct wlb_error_line found;
	(void)state;
	assert_int_equal(wlb_error_file_read(bytes, load("error.json"), &found), 0);
	check(&found, "ValueError: loss is nan at step 17", "KeyError: 'x'", -1);
	assert_int_equal(wlb_error_file_read(text, strlen(text), &found), 0);
	check(&found, "Signal 11 (SIGSEGV) received by PID 7", "", -1);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_int_equal(wlb_error_file_read(none[i], strlen(none[i]), &found), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(real_outputs),
		cmocka_unit_test(lines_of_several_processes),
		cmocka_unit_test(what_is_not_printable),
		cmocka_unit_test(consequences_alone),
		cmocka_unit_test(ranks_below_zero_are_none),
		cmocka_unit_test(a_syntax_error),
		cmocka_unit_test(no_error),
		cmocka_unit_test(last_lines),
		cmocka_unit_test(error_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

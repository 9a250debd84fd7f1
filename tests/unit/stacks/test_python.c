/* Stacks of Python: from a handler that a process has announced, and from a program that stands for py-spy. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "coordinator/stacks/announced_handler.h"
#include "coordinator/stacks/py_spy.h"
#include "coordinator/stacks/python_stacks.h"
#include "tests/unit/stacks/child_state.h"

enum { SIGNAL = 45 };

/* As faulthandler of Python 3.11 writes it. */
static const char written[] = "Thread 0x00007f1 (most recent call first):\n"
			      "  File \"/usr/lib/python3.11/threading.py\", line 975 in run\n"
			      "\n"
			      "Current thread 0x00007f2 (most recent call first):\n"
			      "  File \"/home/a/train.py\", line 12 in step\n"
			      "  File \"/home/a/train.py\", line 20 in <module>\n";

static void assert_frames(json_t *frames, const char *expected)
{
	char *text = json_dumps(frames, JSON_COMPACT);
	assert_string_equal(text, expected);
	free(text);
	json_decref(frames);
}

/* ---- a handler ----------------------------------------------------------------------------------------------------
 */

static int announced = -1;

static void write_stacks(int number)
{
	(void)number;
	(void)!write(announced, written, sizeof(written) - 1);
}

enum { HAS_FILE = 1, HAS_HANDLER = 2, BLOCKS = 4 };

/* Starts a process with a file or a handler, or both. It would be ended by the signal without a handler. */
static pid_t start(int what)
{
	int ready[2];
	char byte, name[32];
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		sigset_t set;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		snprintf(name, sizeof(name), WLB_ANNOUNCED_HANDLER_FILE "%d", SIGNAL);
		announced = memfd_create(what & HAS_FILE ? name : "other", MFD_CLOEXEC);
		fcntl(announced, F_SETFL, O_APPEND);
		if (what & HAS_HANDLER)
			signal(SIGNAL, write_stacks);
		sigemptyset(&set);
		sigaddset(&set, SIGNAL);
		if (what & BLOCKS)
			sigprocmask(SIG_BLOCK, &set, NULL);
		(void)!write(ready[1], "x", 1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void end(pid_t pid)
{
	assert_int_not_equal(state_of(pid), 'Z');
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static json_t *dump(pid_t pid)
{
	return wlb_announced_handler_dump(pid, wlb_clock_ms() + 5000);
}

static void an_announced_handler_is_asked(void **state)
{
	(void)state;
	pid_t pid = start(HAS_FILE | HAS_HANDLER);
	wait_for_state(pid, 'S');
	for (int i = 0; i < 2; i++) {
		json_t *threads = dump(pid);
		assert_non_null(threads);
		assert_frames(wlb_python_stacks_frames(threads, pid, NULL, 0, 64),
		              "[\"step (/home/a/train.py:12)\",\"<module> (/home/a/train.py:20)\"]");
		json_decref(threads);
	}
	end(pid);
}

static void nobody_else_is_signalled(void **state)
{
	static const int others[] = {HAS_FILE, HAS_HANDLER, HAS_FILE | HAS_HANDLER | BLOCKS, 0};
	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		pid_t pid = start(others[i]);
		assert_null(dump(pid));
		end(pid);
	}
}

static void one_that_is_stopped_is_not_signalled(void **state)
{
	char path[64], line[256];
	(void)state;
	pid_t pid = start(HAS_FILE | HAS_HANDLER);
	kill(pid, SIGSTOP);
	wait_for_state(pid, 'T');
	assert_null(dump(pid));
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *file = fopen(path, "r");
	while (fgets(line, sizeof(line), file) != NULL)
		if (strncmp(line, "SigPnd:", 7) == 0 || strncmp(line, "ShdPnd:", 7) == 0)
			assert_int_equal(strtoull(line + 7, NULL, 16), 0);
	fclose(file);
	end(pid);
}

static void what_is_written_is_read_in_bounds(void **state)
{
	(void)state;
	assert_null(wlb_announced_handler_read("", 1));
	assert_null(
		wlb_announced_handler_read("Current thread 0x1 (most recent call first):\n  <no Python frame>\n", 1));
	assert_null(wlb_announced_handler_read("Current thread ", 1));
	assert_null(wlb_announced_handler_read("Current thread \n  File \"a", 1));
	json_t *threads =
		wlb_announced_handler_read("Current thread \n  File \"a\", line 9\n  File \"b\n\", line 1 in c", 7);
	assert_frames(wlb_python_stacks_frames(threads, 7, NULL, 0, 64), "[\"? (a:9)\"]");
	json_decref(threads);
}

/* ---- frames -------------------------------------------------------------------------------------------------------
 */

static void frames_of_the_interpreter_give_way(void **state)
{
	static const char *const native[] = {"read+0x1 (libc.so.6)", "0x12 (python3.11)", "main+0x1 (python3.11)"};
	json_t *threads =
		json_loads("[{\"os_thread_id\":5,\"frames\":[{\"name\":\"f(\\u00e4\",\"short_filename\":\"a (b).py\","
	                   "\"filename\":\"/x/a (b).py\",\"line\":3},{\"name\":\"g\",\"line\":4}]}]",
	                   0, NULL);
	(void)state;
	assert_frames(wlb_python_stacks_frames(threads, 5, native, 3, 64),
	              "[\"read+0x1 (libc.so.6)\",\"f??? (a ?b?.py:3)\",\"g (?:4)\"]");
	assert_frames(wlb_python_stacks_frames(threads, 5, native, 3, 2),
	              "[\"read+0x1 (libc.so.6)\",\"f??? (a ?b?.py:3)\"]");
	assert_frames(wlb_python_stacks_frames(threads, 6, native, 3, 64),
	              "[\"read+0x1 (libc.so.6)\",\"0x12 (python3.11)\",\"main+0x1 (python3.11)\"]");
	assert_frames(wlb_python_stacks_frames(NULL, 5, native, 1, 64), "[\"read+0x1 (libc.so.6)\"]");
	json_decref(threads);
}

/* ---- py-spy -------------------------------------------------------------------------------------------------------
 */

struct folder {
	char path[64], interpreter[128], program[128];
};

static void copy_file(const char *from, const char *to)
{
	char command[512];
	snprintf(command, sizeof(command), "cp %s %s", from, to);
	assert_int_equal(system(command), 0);
}

/* An interpreter that sleeps, and beside it a py-spy that does this. */
static void make(struct folder *folder, const char *script)
{
	snprintf(folder->path, sizeof(folder->path), "/tmp/test-python-XXXXXX");
	assert_non_null(mkdtemp(folder->path));
	snprintf(folder->interpreter, sizeof(folder->interpreter), "%s/python3", folder->path);
	snprintf(folder->program, sizeof(folder->program), "%s/py-spy", folder->path);
	copy_file("/bin/sleep", folder->interpreter);
	FILE *file = fopen(folder->program, "w");
	fprintf(file, "#!/bin/sh\n%s\n", script);
	fclose(file);
	assert_int_equal(chmod(folder->program, 0755), 0);
}

static void discard(const struct folder *folder)
{
	unlink(folder->interpreter);
	unlink(folder->program);
	rmdir(folder->path);
}

static pid_t sleep_as(const char *program)
{
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(program, program, "600", (char *)NULL);
		_exit(127);
	}
	/* The kernel sets the words of a process after its program. */
	int64_t until_ms = wlb_clock_ms() + LATE_MS;
	char path[64], word[128] = "";
	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	while (strcmp(word, program) != 0 && wlb_clock_left_ms(until_ms) > 0) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t length = read(fd, word, sizeof(word) - 1);
		close(fd);
		word[length > 0 ? length : 0] = '\0';
	}
	return pid;
}

static void py_spy_beside_the_interpreter_is_run(void **state)
{
	struct folder folder;
	(void)state;
	make(&folder, "[ \"$1 $2 $3 $4\" = 'dump --nonblocking --json --pid' ] && "
	              "echo "
	              "\"[{\\\"os_thread_id\\\":$5,\\\"frames\\\":[{\\\"name\\\":\\\"f\\\",\\\"short_filename\\\":"
	              "\\\"a.py\\\",\\\"line\\\":1}]}]\"");
	pid_t pid = sleep_as(folder.interpreter);
	json_t *threads = wlb_py_spy_dump(pid, wlb_clock_ms() + LATE_MS);
	assert_frames(wlb_python_stacks_frames(threads, pid, NULL, 0, 64), "[\"f (a.py:1)\"]");
	json_decref(threads);
	end(pid);
	discard(&folder);
}

static void a_py_spy_that_hangs_is_killed(void **state)
{
	struct folder folder;
	(void)state;
	make(&folder, "exec sleep 600");
	pid_t pid = sleep_as(folder.interpreter);
	int64_t began_ms = wlb_clock_ms();
	assert_null(wlb_py_spy_dump(pid, began_ms + 300));
	assert_in_range(wlb_clock_ms() - began_ms, 300, LATE_MS);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), 0); /* the interpreter alone is left */
	end(pid);
	discard(&folder);
}

static void without_python_nothing_is_run(void **state)
{
	struct folder folder;
	char other[160];
	(void)state;
	make(&folder, "echo '[]'");
	snprintf(other, sizeof(other), "%s/other", folder.path);
	assert_int_equal(rename(folder.interpreter, other), 0);
	pid_t pid = sleep_as(other);
	assert_null(wlb_py_spy_dump(pid, wlb_clock_ms() + LATE_MS));
	end(pid);
	unlink(other);
	discard(&folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_announced_handler_is_asked),
		cmocka_unit_test(nobody_else_is_signalled),
		cmocka_unit_test(one_that_is_stopped_is_not_signalled),
		cmocka_unit_test(what_is_written_is_read_in_bounds),
		cmocka_unit_test(frames_of_the_interpreter_give_way),
		cmocka_unit_test(py_spy_beside_the_interpreter_is_run),
		cmocka_unit_test(a_py_spy_that_hangs_is_killed),
		cmocka_unit_test(without_python_nothing_is_run),
	};
	return cmocka_run_group_tests_name("python", tests, NULL, NULL);
}

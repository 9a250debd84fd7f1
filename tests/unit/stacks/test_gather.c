/* Stacks of processes that this program starts: what is found, and that they are left as they were. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "coordinator/stacks/gather.h"
#include "coordinator/stacks/thread_state.h"
#include "tests/unit/stacks/child_state.h"

enum { SIGNALS = 3000 };

static atomic_int *shared; /* by this program and its children */

static void wait_until(int value)
{
	int64_t until_ms = wlb_clock_ms() + LATE_MS;
	while (atomic_load(shared) < value && wlb_clock_left_ms(until_ms) > 0)
		wlb_clock_sleep_ms(1);
	assert_true(atomic_load(shared) >= value);
}

/* Starts a child that runs `work` and waits until so many of its threads say that they do. */
static pid_t start(void (*work)(void), int threads)
{
	atomic_store(shared, 0);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		work();
		_exit(0);
	}
	assert_true(pid > 0);
	wait_until(threads);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static json_t *gather(pid_t pid, int64_t within_ms)
{
	struct wlb_process_list all;
	struct wlb_frame_names *names = wlb_frame_names_new();
	assert_int_equal(wlb_process_list_read(&all), 0);
	json_t *rank = wlb_stacks_gather(&all, pid, names, wlb_clock_ms() + within_ms);
	wlb_process_list_free(&all);
	wlb_frame_names_free(names);
	assert_non_null(rank);
	return rank;
}

static const json_t *thread_of(const json_t *rank, size_t i)
{
	return json_array_get(json_object_get(rank, "threads"), i);
}

static int has_function(const json_t *thread, const char *function)
{
	size_t i, length = strlen(function);
	const json_t *frame;
	json_array_foreach(json_object_get(thread, "frames"), i, frame)
	{
		const char *text = json_string_value(frame);
		if (strncmp(text, function, length) == 0 && text[length] == '+')
			return 1;
	}
	return 0;
}

/* Whether the innermost frame has one of the lines, of this file, from `first` to `last`. */
static int is_at_line(const json_t *thread, int first, int last)
{
	const char *text = json_string_value(json_array_get(json_object_get(thread, "frames"), 0));
	const char *at = text != NULL ? strstr(text, " at test_gather.c:") : NULL;
	int line = at != NULL ? atoi(at + strlen(" at test_gather.c:")) : 0;
	return line >= first && line <= last;
}

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/* ---- what children do -------------------------------------------------------------------------------------------- */

enum { SPIN_LINE = __LINE__ };
__attribute__((noinline, noreturn)) void spin_in_the_step(void);
void spin_in_the_step(void)
{
	static atomic_long steps;
	atomic_fetch_add(shared, 1);
	for (;;)
		atomic_fetch_add(&steps, 1);
}
enum { SPIN_END_LINE = __LINE__ };

__attribute__((noinline)) void *wait_beside(void *context);
void *wait_beside(void *context)
{
	prctl(PR_SET_NAME, "loader");
	atomic_fetch_add(shared, 1);
	for (;;)
		pause();
	return context;
}

static void spin_with_a_thread(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, wait_beside, NULL);
	spin_in_the_step();
}

__attribute__((noinline)) static void wait_for_command(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		spin_in_the_step();
	}
	while (waitpid(pid, NULL, 0) != pid)
		;
}

/* The parent of vfork() sleeps in the kernel until its child ends, where only SIGKILL wakes it. */
static void sleep_in_the_kernel(void)
{
	if (vfork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		atomic_store(shared, 1);
		for (;;)
			pause();
	}
}

static void count(int number)
{
	(void)number;
	atomic_fetch_add(shared, 1);
}

static void count_signals(void)
{
	struct sigaction action = {.sa_handler = count};
	sigaction(SIGRTMIN, &action, NULL);
	atomic_store(shared, 1);
	for (;;)
		pause();
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void functions_of_all_threads_are_named(void **state)
{
	(void)state;
	pid_t pid = start(spin_with_a_thread, 2);
	json_t *rank = gather(pid, LATE_MS);
	assert_int_equal(json_array_size(json_object_get(rank, "threads")), 2);
	assert_true(has_function(thread_of(rank, 0), "spin_in_the_step"));
	assert_true(is_at_line(thread_of(rank, 0), SPIN_LINE, SPIN_END_LINE));
	assert_string_equal(text_of(thread_of(rank, 0), "state"), "R");
	assert_string_equal(text_of(thread_of(rank, 1), "name"), "loader");
	assert_true(has_function(thread_of(rank, 1), "wait_beside"));
	assert_string_equal(text_of(rank, "note"), "");
	json_decref(rank);
	assert_int_equal(state_of(pid), 'R');
	end(pid);
}

static void a_stopped_process_stays_stopped(void **state)
{
	(void)state;
	pid_t pid = start(spin_with_a_thread, 2);
	kill(pid, SIGSTOP);
	wait_for_state(pid, 'T');
	for (int i = 0; i < 3; i++) {
		json_t *rank = gather(pid, LATE_MS);
		assert_string_equal(text_of(rank, "state"), "T");
		assert_true(has_function(thread_of(rank, 0), "spin_in_the_step"));
		assert_true(has_function(thread_of(rank, 1), "wait_beside"));
		json_decref(rank);
		wlb_clock_sleep_ms(20);
		assert_int_equal(state_of(pid), 'T');
	}
	kill(pid, SIGCONT);
	wait_for_state(pid, 'R');
	end(pid);
}

static void of_a_shell_its_command_is_first(void **state)
{
	(void)state;
	pid_t pid = start(wait_for_command, 1);
	wait_for_state(pid, 'S');
	json_t *rank = gather(pid, LATE_MS);
	assert_int_equal(json_integer_value(json_object_get(rank, "pid")), pid);
	assert_true(has_function(thread_of(rank, 0), "spin_in_the_step"));
	assert_true(json_integer_value(json_object_get(thread_of(rank, 0), "pid")) != pid);
	assert_true(has_function(thread_of(rank, 1), "wait_for_command"));
	json_decref(rank);
	end(pid);
}

static void a_thread_in_uninterruptible_sleep_is_left_alone(void **state)
{
	(void)state;
	pid_t pid = start(sleep_in_the_kernel, 1);
	wait_for_state(pid, 'D');
	int64_t begin_ms = wlb_clock_ms();
	json_t *rank = gather(pid, LATE_MS);
	assert_in_range(wlb_clock_ms() - begin_ms, 0, 3000);
	assert_string_equal(text_of(thread_of(rank, 0), "state"), "D");
	assert_int_equal(json_array_size(json_object_get(thread_of(rank, 0), "frames")), 0);
	assert_non_null(strstr(text_of(rank, "note"), "uninterruptible sleep"));
	json_decref(rank);
	end(pid);
}

static void a_refusal_is_explained(void **state)
{
	(void)state;
	pid_t pid = start(spin_in_the_step, 1);
	assert_int_equal(ptrace(PTRACE_SEIZE, pid, NULL, NULL), 0);
	json_t *rank = gather(pid, LATE_MS);
	assert_int_equal(json_array_size(json_object_get(thread_of(rank, 0), "frames")), 0);
	assert_string_equal(text_of(thread_of(rank, 0), "state"), "R");
	assert_non_null(strstr(text_of(rank, "note"), "traces it already"));
	json_decref(rank);
	end(pid);
}

/* Returns the process that sends the signals, as fast as they are taken. */
static pid_t send_signals(pid_t to)
{
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	for (int i = 0; i < SIGNALS; i++) {
		sigqueue(to, SIGRTMIN, (union sigval){0});
		while (atomic_load(shared) < i - 2)
			;
	}
	_exit(0);
}

static void no_signal_is_lost(void **state)
{
	(void)state;
	int64_t until_ms = wlb_clock_ms() + LATE_MS;
	pid_t pid = start(count_signals, 1), sender = send_signals(pid);
	while (atomic_load(shared) < 1 + SIGNALS && wlb_clock_left_ms(until_ms) > 0)
		json_decref(gather(pid, LATE_MS));
	end(sender);
	assert_int_equal(atomic_load(shared), 1 + SIGNALS);
	end(pid);
}

static void the_time_and_a_process_that_is_gone(void **state)
{
	(void)state;
	pid_t pid = start(spin_with_a_thread, 2);
	json_t *rank = gather(pid, 0);
	assert_int_equal(json_array_size(json_object_get(rank, "threads")), 0);
	assert_int_equal(json_integer_value(json_object_get(rank, "left_out")), 2);
	assert_non_null(strstr(text_of(rank, "note"), "time"));
	json_decref(rank);
	end(pid);
	rank = gather(pid, LATE_MS);
	assert_int_equal(json_array_size(json_object_get(rank, "threads")), 0);
	assert_string_equal(text_of(rank, "state"), "?");
	json_decref(rank);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_of_all_threads_are_named),
		cmocka_unit_test(a_stopped_process_stays_stopped),
		cmocka_unit_test(of_a_shell_its_command_is_first),
		cmocka_unit_test(a_thread_in_uninterruptible_sleep_is_left_alone),
		cmocka_unit_test(a_refusal_is_explained),
		cmocka_unit_test(no_signal_is_lost),
		cmocka_unit_test(the_time_and_a_process_that_is_gone),
	};
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

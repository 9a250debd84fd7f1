/* Tasks are children of the test, which reaps them when it wants to, as slurmstepd does. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "coordinator/agent/process.h"
#include "coordinator/agent/tasks.h"

static pid_t start(int exit_code)
{
	pid_t pid = fork();
	if (pid == 0 && exit_code < 0)
		pause();
	if (pid == 0)
		_exit(exit_code);
	return pid;
}

static void reap(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Until the kernel has made a zombie of it, without reaping it. */
static void wait_dead(pid_t pid)
{
	siginfo_t info;
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

static void reads_how_a_process_ended(void **state)
{
	(void)state;
	static const int codes[] = {0, 3, 255};
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		pid_t pid = start(codes[i]);
		wait_dead(pid);
		assert_int_equal(wlb_process_exit_code(pid), codes[i]);
		reap(pid);
		assert_int_equal(wlb_process_exit_code(pid), -1);
	}
	pid_t killed = start(-1);
	assert_int_equal(wlb_process_exit_code(killed), -1);
	kill(killed, SIGTERM);
	wait_dead(killed);
	assert_int_equal(wlb_process_exit_code(killed), 128 + SIGTERM);
	reap(killed);
}

static void sees_who_is_stopped(void **state)
{
	(void)state;
	pid_t pid = start(-1);
	assert_false(wlb_process_stopped(pid));
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
	assert_true(wlb_process_stopped(pid));
	reap(pid);
	assert_false(wlb_process_stopped(pid));
}

static pid_t start_marked(const char *mark)
{
	pid_t pid = fork();
	if (pid == 0)
		execle("/bin/sleep", "sleep", "60", NULL, (char *const[]){"A=1", (char *)mark, NULL});
	return pid;
}

static void kills_those_that_are_marked(void **state)
{
	(void)state;
	const char *marks[] = {"A=1", "WLB_TEST_MARK=yes", NULL};
	pid_t ours = start_marked("WLB_TEST_MARK=yes"), other = start_marked("WLB_TEST_MARK=yes2");
	wlb_clock_sleep_ms(200); /* until both have their environment */
	assert_int_equal(wlb_process_signal_marked(marks, SIGKILL), 1);
	wait_dead(ours);
	assert_int_equal(wlb_process_exit_code(ours), 128 + SIGKILL);
	assert_int_equal(kill(other, 0), 0);
	assert_int_equal(wlb_process_exit_code(other), -1);
	reap(ours);
	reap(other);
}

static void notes_who_ends(void **state)
{
	(void)state;
	struct wlb_agent_tasks tasks;
	pid_t pids[] = {start(-1), start(-1)};
	assert_int_equal(wlb_agent_tasks_open(&tasks, 2, NULL), 0);
	wlb_agent_tasks_add(&tasks, 6, pids[0]);
	wlb_agent_tasks_add(&tasks, 6, pids[1]); /* added twice */
	assert_false(wlb_agent_tasks_complete(&tasks));
	wlb_agent_tasks_add(&tasks, 7, pids[1]);
	wlb_agent_tasks_add(&tasks, 8, getpid());
	assert_true(wlb_agent_tasks_complete(&tasks));
	assert_int_equal(tasks.count, 2);
	assert_false(wlb_agent_tasks_check(&tasks, false));
	kill(pids[1], SIGKILL);
	wait_dead(pids[1]);
	assert_true(wlb_agent_tasks_check(&tasks, false));
	assert_int_equal(tasks.list[1].code, 137);
	assert_false(wlb_agent_tasks_exited(&tasks, 7, 1)); /* the kernel said so first */
	assert_false(wlb_agent_tasks_over(&tasks));
	assert_true(wlb_agent_tasks_exited(&tasks, 6, 3));
	assert_false(wlb_agent_tasks_exited(&tasks, 9, 3));
	assert_true(wlb_agent_tasks_over(&tasks));
	wlb_agent_tasks_close(&tasks);
	reap(pids[0]);
	reap(pids[1]);
}

/* A reaped rank of which the plugin says nothing: a task epilog may come first, unless slurmstepd cannot speak. */
static void waits_for_the_plugin(void **state)
{
	(void)state;
	struct wlb_agent_tasks tasks;
	pid_t pid = start(-1);
	assert_int_equal(wlb_agent_tasks_open(&tasks, 1, NULL), 0);
	wlb_agent_tasks_add(&tasks, 3, pid);
	reap(pid);
	assert_false(wlb_agent_tasks_check(&tasks, true));
	assert_true(wlb_agent_tasks_undecided(&tasks));
	wlb_clock_sleep_ms(WLB_AGENT_SILENCE_MS + 50);
	assert_false(wlb_agent_tasks_check(&tasks, false));
	assert_true(wlb_agent_tasks_check(&tasks, true));
	assert_true(tasks.list[0].lost);
	assert_true(wlb_agent_tasks_over(&tasks));
	assert_true(wlb_agent_tasks_exited(&tasks, 3, 0)); /* it said so after all */
	wlb_agent_tasks_close(&tasks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_how_a_process_ended),   cmocka_unit_test(sees_who_is_stopped),
		cmocka_unit_test(kills_those_that_are_marked), cmocka_unit_test(notes_who_ends),
		cmocka_unit_test(waits_for_the_plugin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

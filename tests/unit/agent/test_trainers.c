/* The processes that train, found among those that this program starts, and those of them that cannot go on. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "coordinator/agent/launcher_process.h"
#include "coordinator/agent/process.h"
#include "coordinator/agent/trainers.h"

enum { LATE_MS = 30000, TASK_RANK = 1 };

struct fixture {
	pid_t task;
	int input; /* keeps the standard input of the task open */
	struct wlb_agent_tasks tasks;
	struct wlb_agent_trainers trainers;
	int64_t now_ms; /* as the functions are told */
};

/* Starts a shell as the one task of the node, as a process group of its own. */
static void start(struct fixture *f, const char *name, const char *script, const char *argument)
{
	int ends[2];
	*f = (struct fixture){.now_ms = wlb_clock_ms()};
	assert_int_equal(pipe(ends), 0);
	f->task = fork();
	if (f->task == 0) {
		setpgid(0, 0);
		dup2(ends[0], STDIN_FILENO);
		closefrom(STDERR_FILENO + 1);
		setenv("RANK", "1", 1);
		setenv("LOCAL_RANK", "0", 1);
		setenv("WORLD_SIZE", "2", 1);
		execl("/bin/bash", name, "-c", script, argument, (char *)NULL);
		_exit(127);
	}
	assert_true(f->task > 0);
	setpgid(f->task, f->task);
	close(ends[0]);
	f->input = ends[1];
	assert_int_equal(wlb_agent_tasks_open(&f->tasks, 1, NULL), 0);
	wlb_agent_tasks_add(&f->tasks, TASK_RANK, f->task);
}

static void end(struct fixture *f)
{
	kill(-f->task, SIGKILL);
	waitpid(f->task, NULL, 0);
	close(f->input);
	wlb_agent_trainers_free(&f->trainers);
	wlb_agent_tasks_close(&f->tasks);
}

static void look(struct fixture *f, int64_t later_ms)
{
	f->now_ms += later_ms;
	wlb_agent_trainers_look(&f->trainers, &f->tasks, f->now_ms);
}

/* Looks until there are so many processes of which the first has that rank. */
static void look_for(struct fixture *f, int count, int rank)
{
	int64_t until_ms = wlb_clock_ms() + LATE_MS;
	do {
		f->now_ms = wlb_clock_ms();
		f->trainers.scan_ms = 0;
		look(f, 0);
		wlb_clock_sleep_ms(5);
	} while (wlb_clock_left_ms(until_ms) > 0 && (f->trainers.count != count || f->trainers.list[0].rank != rank));
	assert_int_equal(f->trainers.count, count);
	assert_int_equal(f->trainers.list[0].rank, rank);
}

static void wait_for(pid_t pid, char state)
{
	int64_t until_ms = wlb_clock_ms() + LATE_MS;
	while (wlb_process_state(pid) != state && wlb_clock_left_ms(until_ms) > 0)
		wlb_clock_sleep_ms(1);
	assert_int_equal(wlb_process_state(pid), state);
}

static void assert_report(const struct fixture *f, const char *format, ...)
{
	char expected[512], *text = NULL;
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(expected, sizeof(expected), format, arguments);
	va_end(arguments);
	json_t *report = wlb_agent_trainers_report(&f->trainers, false, f->now_ms);
	assert_non_null(report);
	text = json_dumps(report, JSON_COMPACT);
	assert_string_equal(text, expected);
	free(text);
	json_decref(report);
}

static void assert_nothing(const struct fixture *f)
{
	assert_null(wlb_agent_trainers_report(&f->trainers, false, f->now_ms));
}

/* A launcher on the second node of two, with a rank that has a loader. The shell ends none of them. */
static const char launcher[] = "RANK=4 LOCAL_RANK=0 WORLD_SIZE=8 bash -c 'sleep 600 & read x' <&0 & "
			       "RANK=5 LOCAL_RANK=1 WORLD_SIZE=8 sleep 600 & exec sleep 600";

static void the_ranks_of_a_launcher_are_its_children(void **state)
{
	struct fixture f;
	json_t *expected;
	(void)state;
	start(&f, "bash", launcher, "");
	look_for(&f, 2, 4);
	assert_int_equal(f.trainers.list[1].rank, 5);
	assert_int_equal(f.trainers.list[1].task, TASK_RANK);
	assert_true(f.trainers.list[0].pid != f.task && f.trainers.list[1].pid != f.task);
	assert_nothing(&f);
	json_t *report = wlb_agent_trainers_report(&f.trainers, true, f.now_ms);
	assert_true(
		json_equal(report, expected = json_loads("{\"running\":2,\"faulty\":[],\"ranks\":[[4,2]]}", 0, NULL)));
	json_decref(expected);
	json_decref(report);
	end(&f);
}

/* Between two scans the stacks of the rank are those of the shell. */
static void a_shell_counts_once_its_child_has_ended(void **state)
{
	struct fixture f;
	(void)state;
	start(&f, "bash", "sleep 600; read x", "");
	int64_t until_ms = wlb_clock_ms() + LATE_MS;
	do
		look_for(&f, 1, TASK_RANK);
	while (f.trainers.list[0].pid == f.task && wlb_clock_left_ms(until_ms) > 0);
	pid_t child = f.trainers.list[0].pid;
	assert_true(child != f.task);
	assert_int_equal(kill(child, SIGKILL), 0);
	do
		look(&f, 0);
	while (f.trainers.list[0].pid == child && wlb_clock_left_ms(until_ms) > 0);
	assert_int_equal(f.trainers.count, 1);
	assert_int_equal(f.trainers.list[0].pid, f.task);
	assert_int_equal(f.trainers.list[0].condition, WLB_PROCESS_RUNS);
	end(&f);
}

static void without_a_launcher_the_task_trains_or_its_child(void **state)
{
	struct fixture f;
	(void)state;
	start(&f, "bash", "read x", "");
	look_for(&f, 1, TASK_RANK);
	assert_int_equal(f.trainers.list[0].pid, f.task);
	end(&f);
	start(&f, "bash", "sleep 600; exit 1", "");
	int64_t until_ms = wlb_clock_ms() + LATE_MS;
	do
		look_for(&f, 1, TASK_RANK);
	while (f.trainers.list[0].pid == f.task && wlb_clock_left_ms(until_ms) > 0);
	assert_true(f.trainers.list[0].pid != f.task);
	end(&f);
}

static void a_rank_that_is_a_shell_waits_for_its_program(void **state)
{
	struct fixture f;
	(void)state;
	start(&f, "bash", "RANK=4 bash -c 'sleep 600; exit 1' & exec sleep 600", "");
	int64_t until_ms = wlb_clock_ms() + LATE_MS;
	char command[64] = "";
	do {
		char path[64];
		look_for(&f, 1, 4);
		snprintf(path, sizeof(path), "/proc/%d/comm", (int)f.trainers.list[0].pid);
		FILE *file = fopen(path, "r");
		if (file != NULL && fgets(command, sizeof(command), file) == NULL)
			command[0] = '\0';
		if (file != NULL)
			fclose(file);
	} while (strcmp(command, "sleep\n") != 0 && wlb_clock_left_ms(until_ms) > 0);
	assert_string_equal(command, "sleep\n");
	end(&f);
}

static void a_stopped_rank_is_reported_until_it_goes_on(void **state)
{
	struct fixture f;
	(void)state;
	start(&f, "bash", launcher, "");
	look_for(&f, 2, 4);
	pid_t pid = f.trainers.list[1].pid;
	kill(pid, SIGSTOP);
	wait_for(pid, 'T');
	look(&f, 0);
	assert_report(&f, "{\"running\":1,\"faulty\":[{\"rank\":5,\"task\":1,\"pid\":%d,\"state\":\"stopped\"}]}",
	              (int)pid);
	kill(pid, SIGCONT);
	wait_for(pid, 'S');
	look(&f, 0);
	assert_nothing(&f);
	end(&f);
}

static void a_process_in_a_debugger_is_not_reported(void **state)
{
	struct fixture f;
	int status;
	(void)state;
	start(&f, "bash", "read x", "");
	look_for(&f, 1, TASK_RANK);
	assert_int_equal(ptrace(PTRACE_ATTACH, f.task, NULL, NULL), 0);
	assert_int_equal(waitpid(f.task, &status, __WALL), f.task);
	look(&f, 0);
	assert_int_equal(f.trainers.list[0].condition, WLB_PROCESS_TRACED);
	assert_nothing(&f);
	assert_int_equal(ptrace(PTRACE_DETACH, f.task, NULL, NULL), 0);
	/* One that a signal had stopped before. */
	kill(f.task, SIGSTOP);
	wait_for(f.task, 'T');
	look(&f, 0);
	assert_int_equal(f.trainers.list[0].condition, WLB_PROCESS_STOPPED);
	assert_int_equal(ptrace(PTRACE_SEIZE, f.task, NULL, NULL), 0);
	look(&f, 0);
	assert_int_equal(f.trainers.list[0].condition, WLB_PROCESS_TRACED);
	end(&f);
}

static void a_dead_rank_is_reported_where_it_is_not_reaped(void **state)
{
	struct fixture f;
	(void)state;
	start(&f, "bash", launcher, "");
	look_for(&f, 2, 4);
	pid_t pid = f.trainers.list[0].pid, other = f.trainers.list[1].pid;
	kill(pid, SIGKILL);
	wait_for(pid, 'Z');
	look(&f, 0);
	assert_report(&f, "{\"running\":1,\"faulty\":[{\"rank\":4,\"task\":1,\"pid\":%d,\"state\":\"dead\"}]}",
	              (int)pid);
	look(&f, 60000); /* the processes are listed again */
	assert_int_equal(f.trainers.count, 2);
	kill(other, SIGTERM);
	wait_for(other, 'Z');
	look(&f, 60000);
	assert_int_equal(f.trainers.count, 2);
	end(&f);
}

static void one_that_has_ended_well_is_not_dead(void **state)
{
	struct fixture f;
	(void)state;
	start(&f, "bash", "RANK=4 WORLD_SIZE=8 bash -c 'read x; exit 0' <&0 & exec sleep 600", "");
	look_for(&f, 1, 4);
	pid_t pid = f.trainers.list[0].pid;
	assert_int_equal(write(f.input, "x\n", 2), 2);
	wait_for(pid, 'Z');
	look(&f, 0);
	assert_nothing(&f);
	end(&f);
}

static void a_launcher_without_ranks_is_reported_after_a_while(void **state)
{
	struct fixture f;
	(void)state;
	start(&f, "torchrun", "read x", "--nnodes=3:4");
	look_for(&f, 1, TASK_RANK);
	while (f.trainers.list[0].launcher == NULL) /* bash has not begun yet */
		look_for(&f, 1, TASK_RANK);
	assert_string_equal(f.trainers.list[0].launcher, "torchrun");
	look(&f, WLB_AGENT_LAUNCHER_WAITS_MS - 5000);
	assert_nothing(&f);
	look(&f, 5000);
	assert_report(&f,
	              "{\"running\":0,\"faulty\":[{\"rank\":1,\"task\":1,\"pid\":%d,\"state\":\"waiting\","
	              "\"launcher\":\"torchrun\",\"for_s\":20,\"nodes\":3}]}",
	              (int)f.task);
	end(&f);
}

static void a_word_among_the_arguments_is_no_launcher(void **state)
{
	struct fixture f;
	const char *name;
	(void)state;
	setenv("PET_NNODES", "3", 1);
	start(&f, "bash", "read x", "torchrun");
	unsetenv("PET_NNODES");
	int64_t until_ms = wlb_clock_ms() + LATE_MS;
	while (wlb_launcher_process_nodes(f.task) != 3 && wlb_clock_left_ms(until_ms) > 0) /* bash has not begun yet */
		wlb_clock_sleep_ms(1);
	assert_int_equal(wlb_launcher_process_nodes(f.task), 3);
	assert_false(wlb_launcher_process(f.task, &name));
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_ranks_of_a_launcher_are_its_children),
		cmocka_unit_test(a_shell_counts_once_its_child_has_ended),
		cmocka_unit_test(without_a_launcher_the_task_trains_or_its_child),
		cmocka_unit_test(a_rank_that_is_a_shell_waits_for_its_program),
		cmocka_unit_test(a_stopped_rank_is_reported_until_it_goes_on),
		cmocka_unit_test(a_process_in_a_debugger_is_not_reported),
		cmocka_unit_test(a_dead_rank_is_reported_where_it_is_not_reaped),
		cmocka_unit_test(one_that_has_ended_well_is_not_dead),
		cmocka_unit_test(a_launcher_without_ranks_is_reported_after_a_while),
		cmocka_unit_test(a_word_among_the_arguments_is_no_launcher),
	};
	return cmocka_run_group_tests_name("trainers", tests, NULL, NULL);
}

/* Which commands are refused since each task would start all ranks. */
#include "coordinator/wlb/run/command/check_command.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/wlb/words.h"

/* Whether the command, words separated by blanks, may run in so many tasks of two nodes. */
static bool may_run(const char *text, int tasks_per_node, char *srun_arg)
{
	struct words from;
	char **words = split(&from, text), *srun_args[] = {srun_arg};
	const struct wlb_run run = {
		.options = {.command = words, .srun_args = srun_args, .srun_arg_count = srun_arg != NULL},
		.job = {.node_count = 2, .tasks_per_node = tasks_per_node}};
	return wlb_run_check_command(&run, NULL) == 0;
}

static void launchers_are_refused(void **state)
{
	static const char *const commands[] = {
		"mpirun -np 4 train",
		"/opt/openmpi/bin/mpiexec train",
		"mpiexec.hydra train",
		"mpirun_rsh train",
		"orterun train",
		"prterun train",
		"srun train",
		"env A=1 B=2 mpirun train",
		"/usr/bin/env -i -u A mpirun train",
		"numactl --interleave=all -m 0 mpirun train",
		"nice -n 5 timeout 60s mpirun train",
		"nohup stdbuf -o L env A=1 /usr/bin/mpirun train",
	};
	(void)state;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (may_run(commands[i], 1, NULL))
			fail_msg("%s", commands[i]);
}

static void programs_are_not(void **state)
{
	static const char *const commands[] = {
		"train mpirun",
		"env -i train mpirun",
		"bash -c mpirun",
		"torchrun --nnodes 2 train.py",
		"mpirunner",
		"mpi/srun-like train",
		"/opt/mpirun/bin/train",
		"env -u mpirun train",
		"env",
		"numactl -m 0 train srun",
		"python mpirun.py",
		"./mpirun.sh",
		"./srun_train.sh",
		"mpirun_train.py",
		"env A=mpirun train",
		"timeout -k 5 9",
		"/srun/",
	};
	(void)state;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!may_run(commands[i], 1, NULL))
			fail_msg("%s", commands[i]);
}

static void a_single_task_may_be_a_launcher(void **state)
{
	char one[] = "--ntasks=1", short_one[] = "-n1", two[] = "--ntasks=2";
	(void)state;
	assert_true(may_run("mpirun train", 4, one));
	assert_true(may_run("mpirun train", 4, short_one));
	assert_false(may_run("mpirun train", 4, two));
}

static void a_pipe_of_the_shell_is_refused(void **state)
{
	char option[64], word[64];
	int ends[2];
	(void)state;
	assert_int_equal(pipe(ends), 0);
	snprintf(word, sizeof(word), "train --data=/dev/fd/%d", ends[0]);
	assert_false(may_run(word, 1, NULL));
	snprintf(word, sizeof(word), "train /proc/self/fd/%d", ends[0]);
	assert_false(may_run(word, 1, NULL));
	snprintf(option, sizeof(option), "--input=/dev/fd/%d", ends[0]);
	assert_false(may_run("train", 1, option));
	snprintf(word, sizeof(word), "train /dev/fd/%d/x", ends[0]);
	assert_true(may_run(word, 1, NULL));
	assert_true(may_run("train /dev/fd/0 /dev/stdin", 1, NULL));
	close(ends[0]);
	close(ends[1]);
	snprintf(word, sizeof(word), "train /dev/fd/%d", ends[0]);
	assert_true(may_run(word, 1, NULL));
}

/* Options at the end of the command have to be those of the trainer. */
static void a_command_that_cannot_be_told_its_layout(void **state)
{
	static const struct {
		const char *command, *why; /* NULL: it can be */
		bool is_off;
	} cases[] = {
		{"bash -c train",
	         "--for=megatron: the trainer's options cannot be added to a text for a shell, `bash -c", false},
		{"env A=1 /bin/sh -e -c train", "`wlb run --for=megatron -- ./train.sh`", false},
		{"bash -lc train", "a text for a shell", false},
		{"torchrun --no-python bash -c train", "a text for a shell", false},
		{"wlb-worker train", "leave --for out", false},
		{"train", "add --wlb-layout=auto", true},
		{"bash train.sh -c", NULL, false},
		{"bash --norc train.sh", NULL, false},
		{"torchrun train.py", NULL, false},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct words from;
		struct wlb_error error = {0};
		const struct wlb_run run = {
			.options = {.command = split(&from, cases[i].command), .trainer = "megatron"},
			.job = {.node_count = 2, .tasks_per_node = 1, .off = cases[i].is_off}};
		int rc = wlb_run_check_command(&run, &error);
		if (rc != (cases[i].why != NULL ? -1 : 0) || (rc < 0 && strstr(error.message, cases[i].why) == NULL))
			fail_msg("%s: %d, %s", cases[i].command, rc, error.message);
	}
}

static void wlb_worker_is_planned_as_itself(void **state)
{
	static const char *const commands[] = {"train", "wlb-worker train"};
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct words from;
		struct wlb_error error = {0};
		const struct wlb_run run = {
			.options = {.command = split(&from, commands[i]), .planned_trainer = "nemo"},
			.job = {.node_count = 2, .tasks_per_node = 1}};
		assert_int_equal(wlb_run_check_command(&run, &error), -i);
		assert_true(i == 0 || strstr(error.message, "--trainer nemo: the command is wlb-worker") != NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(launchers_are_refused),
		cmocka_unit_test(programs_are_not),
		cmocka_unit_test(a_single_task_may_be_a_launcher),
		cmocka_unit_test(a_pipe_of_the_shell_is_refused),
		cmocka_unit_test(a_command_that_cannot_be_told_its_layout),
		cmocka_unit_test(wlb_worker_is_planned_as_itself),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

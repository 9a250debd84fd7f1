/* Whether `wlb run` is one of several tasks of a step: variables of the step, and a parent that is called as slurmstepd
 * is. */
#include "coordinator/wlb/run/state/started_by_srun.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void set(const char *name, const char *value)
{
	if (value != NULL)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

/* Returns 1 where a grandchild of this process is refused. */
static int check_below(void)
{
	struct wlb_error error;
	int status = 0;
	pid_t child = fork();
	if (child == 0) {
		pid_t grandchild = fork();
		if (grandchild == 0)
			_exit(wlb_run_refuse_several(&error) != 0);
		waitpid(grandchild, &status, 0);
		_exit(WEXITSTATUS(status));
	}
	waitpid(child, &status, 0);
	return WEXITSTATUS(status);
}

static bool is_refused(const char *title, const char *job, const char *step, const char *tasks)
{
	int status;
	pid_t child = fork();
	if (child == 0) {
		set("SLURM_JOB_ID", job);
		set("SLURM_STEP_ID", step);
		set("SLURM_STEP_NUM_TASKS", tasks);
		execl("/proc/self/exe", title, "below", NULL);
		_exit(127);
	}
	waitpid(child, &status, 0);
	assert_in_range(WEXITSTATUS(status), 0, 1);
	return WEXITSTATUS(status) == 1;
}

static void a_task_of_several(void **state)
{
	(void)state;
	assert_true(is_refused("slurmstepd: [12.0]", "12", "0", "4"));
	assert_true(is_refused("slurmstepd: [12.0]    ", "12", "0", "2"));
	assert_true(is_refused("slurmstepd: [12.3+1]", "12", "3", "2")); /* of a heterogeneous job */
}

static void the_only_task_and_no_step(void **state)
{
	(void)state;
	assert_false(is_refused("slurmstepd: [12.0]", "12", "0", "1"));
	assert_false(is_refused("slurmstepd: [12.0]", "12", "0", "x"));
	assert_false(is_refused("slurmstepd: [12.0]", "12", "0", NULL));
	assert_false(is_refused("slurmstepd: [12.0]", "12", NULL, "4"));
	assert_false(is_refused("slurmstepd: [12.0]", NULL, "0", "4"));
	assert_false(is_refused("bash", "12", "0", "4"));
}

/* Of the step in which the script was submitted, or salloc was started. */
static void variables_of_another_step(void **state)
{
	(void)state;
	assert_false(is_refused("slurmstepd: [12.batch]", "12", "0", "4"));
	assert_false(is_refused("slurmstepd: [12.interactive]", "12", "0", "4"));
	assert_false(is_refused("slurmstepd: [12.extern]", "12", "0", "4"));
	assert_false(is_refused("slurmstepd: [11.0]", "12", "0", "4"));
	assert_false(is_refused("slurmstepd: [12.01]", "12", "0", "4"));
	assert_false(is_refused("slurmstepd: [12.1]", "12", "0", "4"));
	assert_false(is_refused("slurmstepd: [112.0]", "12", "0", "4"));
	assert_false(is_refused("slurmstepd: [12.0", "12", "0", "4"));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_task_of_several),
		cmocka_unit_test(the_only_task_and_no_step),
		cmocka_unit_test(variables_of_another_step),
	};
	if (argc > 1 && strcmp(argv[1], "below") == 0)
		return check_below();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The command line and the environment that srun gets. */
#include "coordinator/wlb/run/attempt/launch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/file.h"
#include "coordinator/slurm/slurm_api.h"

enum { OUTPUT_BYTES = 1 << 20 };

static char dir[] = "/tmp/wlb-launch-XXXXXX";
static char srun[64], output[64];
static char *nodes[] = {"n1", "n2", NULL};
static char *command[] = {"train", NULL};

char *__wrap_wlb_hostlist_fold(char *const *names, int count, struct wlb_error *error);

char *__wrap_wlb_hostlist_fold(char *const *names, int count, struct wlb_error *error)
{
	(void)names;
	(void)count;
	(void)error;
	return strdup("n[1-2]");
}

int __wrap_wlb_hostlist_sort(char *const *names, int count, char ***sorted, int *sorted_count, struct wlb_error *error);

int __wrap_wlb_hostlist_sort(char *const *names, int count, char ***sorted, int *sorted_count, struct wlb_error *error)
{
	(void)error;
	*sorted = calloc((size_t)count + 1, sizeof(**sorted));
	assert_non_null(*sorted);
	for (int i = 0; i < count; i++)
		(*sorted)[i] = strdup(names[i]);
	*sorted_count = count;
	return 0;
}

/* Starts a program in place of srun; returns its words and then its environment, a line for each. The caller frees it.
 */
static char *launch(struct wlb_run *run, const struct wlb_attempt *attempt)
{
	struct wlb_error error = {0};
	char *text;
	int status, srun_stderr;
	pid_t child = wlb_run_launch(run, attempt, &srun_stderr, &error);
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(srun_stderr);
	assert_int_equal(wlb_file_read(output, OUTPUT_BYTES, &text, NULL, &error), 0);
	return text;
}

static bool has_line(const char *text, const char *line)
{
	size_t length = strlen(line);
	for (const char *at = text; (at = strstr(at, line)) != NULL; at++)
		if ((at == text || at[-1] == '\n') && at[length] == '\n')
			return true;
	return false;
}

/* Of --wlb-layout=off where `tasks` are named. */
static struct wlb_run run_with_tasks(int tasks)
{
	struct wlb_run run = {.id = "12", .options.command = command, .job = {.tasks = tasks, .off = tasks > 0}};
	sigemptyset(&run.signals_before);
	return run;
}

static const struct wlb_attempt two_nodes = {
	.id = "a", .number = 1, .nodes = nodes, .node_count = 2, .tasks_per_node = 3};

static void the_number_of_tasks_is_that_of_each_node(void **state)
{
	struct wlb_run run = run_with_tasks(0);
	(void)state;
	char *text = launch(&run, &two_nodes);
	assert_true(has_line(text, "--nodes=2"));
	assert_true(has_line(text, "--ntasks=6"));
	assert_true(has_line(text, "--ntasks-per-node=3"));
	free(text);
}

/* --wlb-layout=off with --ntasks=5. */
static void slurm_distributes_the_tasks_of_an_ordinary_job(void **state)
{
	struct wlb_run run = run_with_tasks(5);
	(void)state;
	char *text = launch(&run, &two_nodes);
	assert_true(has_line(text, "--nodes=2"));
	assert_true(has_line(text, "--ntasks=5"));
	assert_null(strstr(text, "--ntasks-per-node"));
	free(text);
}

/* srun refuses both beside --ntasks-per-node. */
static void srun_gets_one_number_of_tasks(void **state)
{
	struct wlb_run run = run_with_tasks(0), off = run_with_tasks(5);
	(void)state;
	setenv("SLURM_NTASKS_PER_GPU", "2", 1);
	setenv("SLURM_NTASKS_PER_TRES", "2", 1);
	char *text = launch(&off, &two_nodes);
	assert_true(has_line(text, "SLURM_NTASKS_PER_GPU=2"));
	free(text);
	text = launch(&run, &two_nodes);
	assert_null(strstr(text, "SLURM_NTASKS_PER_GPU"));
	assert_null(strstr(text, "SLURM_NTASKS_PER_TRES"));
	free(text);
}

/* The second was not planned, and a layout that is not known has no variables. */
static void an_attempt_is_told_its_own_layout_and_settings(void **state)
{
	static const char *const settings[] = {
		"WLB_MICRO_BATCH_SIZE=", "WLB_INTERLEAVE=", "WLB_RECOMPUTE=", "WLB_RECOMPUTE_LAYERS=",
		"WLB_HEAD_STAGES=",      "WLB_PACKING=",    "WLB_TP="};
	struct wlb_run run = run_with_tasks(0);
	struct wlb_attempt attempt = two_nodes;
	(void)state;
	attempt.has_layout = true;
	attempt.layout = (struct wlb_layout){.tp = 3, .cp = 1, .pp = 2, .dp = 1};
	attempt.settings = (struct wlb_run_settings){.micro_batch_size = 2, .interleave = 1, .recompute = "full"};
	char *first = launch(&run, &attempt);
	assert_true(has_line(first, "WLB_TP=3"));
	assert_true(has_line(first, "SLURM_WLB_MICRO_BATCH_SIZE=2"));
	attempt.settings.micro_batch_size = 0;
	attempt.has_layout = false;
	char *second = launch(&run, &attempt);
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		assert_non_null(strstr(first, settings[i]));
		assert_null(strstr(second, settings[i]));
	}
	assert_true(has_line(second, "--distribution=block")); /* in any case */
	free(first);
	free(second);
}

/* Where neither the user nor sbatch has said otherwise, and what srun writes was not begun by this attempt. */
static void files_of_srun_keep_what_attempts_before_wrote(void **state)
{
	char truncate[] = "--open-mode=truncate", *words[] = {truncate};
	struct wlb_run run = run_with_tasks(0), off = run_with_tasks(5), again = run_with_tasks(0),
		       named = run_with_tasks(0);
	struct wlb_attempt second = two_nodes;
	(void)state;
	second.number = 2;
	again.job.restart_count = off.job.restart_count = 1;
	named.options.srun_args = words;
	named.options.srun_arg_count = 1;
	const struct {
		struct wlb_run *run;
		const struct wlb_attempt *attempt;
		const char *mode; /* SLURM_OPEN_MODE */
		bool is_kept;
	} cases[] = {{&run, &two_nodes, NULL, false}, {&run, &second, NULL, true}, {&again, &two_nodes, NULL, true},
	             {&off, &two_nodes, NULL, false}, {&run, &second, "t", false}, {&named, &second, NULL, true}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (cases[i].mode != NULL)
			setenv("SLURM_OPEN_MODE", cases[i].mode, 1);
		char *text = launch(cases[i].run, cases[i].attempt);
		unsetenv("SLURM_OPEN_MODE");
		assert_int_equal(has_line(text, "--open-mode=append"), cases[i].is_kept);
		/* The last one counts. */
		if (cases[i].run == &named)
			assert_true(strstr(text, truncate) > strstr(text, "--open-mode=append"));
		free(text);
	}
}

static int make_srun(void **state)
{
	char path[4096];
	(void)state;
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(srun, sizeof(srun), "%s/srun", dir);
	snprintf(output, sizeof(output), "%s/output", dir);
	FILE *file = fopen(srun, "w");
	if (file == NULL)
		return -1;
	fprintf(file, "#!/bin/sh\nprintf '%%s\\n' \"$@\" > %s\nenv >> %s\n", output, output);
	fclose(file);
	snprintf(path, sizeof(path), "%s:%s", dir, getenv("PATH"));
	return chmod(srun, 0700) == 0 ? setenv("PATH", path, 1) : -1;
}

static int remove_srun(void **state)
{
	(void)state;
	unlink(srun);
	unlink(output);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_number_of_tasks_is_that_of_each_node),
		cmocka_unit_test(slurm_distributes_the_tasks_of_an_ordinary_job),
		cmocka_unit_test(srun_gets_one_number_of_tasks),
		cmocka_unit_test(an_attempt_is_told_its_own_layout_and_settings),
		cmocka_unit_test(files_of_srun_keep_what_attempts_before_wrote),
	};
	return cmocka_run_group_tests(tests, make_srun, remove_srun);
}

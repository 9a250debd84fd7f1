/* The srun that starts a check: its arguments and its environment, and its end. A program that prints both is the first
 * srun in PATH. */
#include "coordinator/wlb/run/check/check_step.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { LIMIT_MS = 20000, SHORT_MS = 100, PAUSE_US = 1000 };

static const char program[] = "#!/bin/sh\n"
			      "for word in \"$@\"; do [ \"$word\" != hang ] || exec sleep 60; done\n"
			      "printf 'argument %s\\n' \"$@\"\n"
			      "env\n";

/* Variables that say what a task of the job gets, on releases from 22.05 to 26.05, and what OpenMP gives to a process.
 */
static const char *const shares[] = {"SLURM_CPUS_PER_TASK", "SRUN_CPUS_PER_TASK",   "SLURM_CPUS_PER_GPU",
                                     "SLURM_EXACT",         "SLURM_EXCLUSIVE",      "SLURM_THREADS_PER_CORE",
                                     "SLURM_HINT",          "SLURM_CPU_BIND",       "SLURM_GPUS",
                                     "SLURM_GPUS_PER_NODE", "SLURM_GPUS_PER_TASK",  "SLURM_GPU_BIND",
                                     "SLURM_TRES_PER_TASK", "SLURM_NTASKS_PER_GPU", "SLURM_NTASKS_PER_TRES",
                                     "SLURM_GRES",          "SLURM_STEP_GRES",      "SLURM_MEM_PER_CPU",
                                     "SLURM_MEM_PER_GPU",   "SLURM_MEM_PER_NODE",   "SLURM_MEM_BIND",
                                     "SLURM_DISTRIBUTION",  "SLURM_CORE_SPEC",      "OMP_PROC_BIND",
                                     "OMP_PLACES",          "GOMP_CPU_AFFINITY",    "OMP_THREAD_LIMIT"};

/* Variables that change where and how srun writes what the tasks print. */
static const char *const outputs[] = {"SLURM_LABELIO", "SLURM_STDOUTMODE", "SLURM_STDERRMODE", "SLURM_STDINMODE"};

enum { SHARES = sizeof(shares) / sizeof(shares[0]) };

static char folder[] = "/tmp/test_check_step-XXXXXX";

/* Whether what srun writes has no end, and how often it was read. */
static bool is_chatty;
static int reads;

enum { READS_MOST = 100000 };

ssize_t __real_read(int fd, void *buffer, size_t size);
ssize_t __wrap_read(int fd, void *buffer, size_t size);
ssize_t __wrap_read(int fd, void *buffer, size_t size)
{
	if (!is_chatty)
		return __real_read(fd, buffer, size);
	assert_true(++reads < READS_MOST);
	memset(buffer, 'x', size);
	return (ssize_t)size;
}

static int make_srun(void **state)
{
	char path[64], paths[4096];
	(void)state;
	if (mkdtemp(folder) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/srun", folder);
	FILE *file = fopen(path, "w");
	if (file == NULL || fputs(program, file) < 0 || fclose(file) != 0 || chmod(path, 0755) != 0)
		return -1;
	snprintf(paths, sizeof(paths), "%s:%s", folder, getenv("PATH"));
	return setenv("PATH", paths, 1);
}

static int remove_srun(void **state)
{
	char path[64];
	(void)state;
	snprintf(path, sizeof(path), "%s/srun", folder);
	return unlink(path) != 0 || rmdir(folder) != 0 ? -1 : 0;
}

/* Starts srun and returns what it has printed, which the caller frees; NULL where it was late. */
static char *run(const char *word, int gpus_per_node, int limit_ms, int *exit_code)
{
	const char *const words[] = {"check-node", word, NULL};
	json_t *nodes = json_pack("[s, s]", "n1", "n2");
	const struct wlb_check_command command = {
		.nodes = nodes, .mpi = "none", .words = words, .gpus_per_node = gpus_per_node, .limit_ms = limit_ms};
	struct wlb_check_step step;
	struct wlb_error error = {0};
	enum wlb_check_progress progress;
	sigset_t signals;
	char *text = NULL;
	sigemptyset(&signals);
	int rc = wlb_check_step_start(&signals, &command, &step, &error);
	json_decref(nodes);
	assert_string_equal(error.message, "");
	assert_int_equal(rc, 0);
	while ((progress = wlb_check_step_poll(&step)) == WLB_CHECK_STEP_RUNS)
		usleep(PAUSE_US);
	*exit_code = wlb_check_step_end(&step, &text);
	if (progress == WLB_CHECK_STEP_ENDED)
		return text;
	free(text);
	return NULL;
}

/* Whether a line begins so. */
static bool has_line(const char *text, const char *begin)
{
	for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, begin, strlen(begin)) == 0)
			return true;
	}
	return false;
}

/* Returns what srun prints where these variables are set, which it has none of. */
static char *run_without(const char *const *names, size_t count, int *exit_code)
{
	for (size_t i = 0; i < count; i++)
		setenv(names[i], "1", 1);
	char *text = run("--json", 0, LIMIT_MS, exit_code);
	for (size_t i = 0; i < count; i++) {
		char begin[64];
		snprintf(begin, sizeof(begin), "%s=", names[i]);
		if (has_line(text, begin))
			fail_msg("srun has %s", names[i]);
		unsetenv(names[i]);
	}
	return text;
}

static void test_the_output_is_that_of_the_tasks(void **state)
{
	int exit_code;
	(void)state;
	free(run_without(outputs, sizeof(outputs) / sizeof(outputs[0]), &exit_code));
	assert_int_equal(exit_code, 0);
}

static void test_the_task_gets_the_whole_node(void **state)
{
	int exit_code;
	(void)state;
	char *text = run_without(shares, SHARES, &exit_code);
	assert_int_equal(exit_code, 0);
	assert_true(has_line(text, "argument --overlap\n"));
	assert_true(has_line(text, "argument --cpu-bind=none\n"));
	assert_true(has_line(text, "argument --nodelist=n[1-2]\n"));
	assert_true(has_line(text, "argument --ntasks=2\n"));
	assert_true(has_line(text, "argument --ntasks-per-node=1\n"));
	assert_true(has_line(text, "argument check-node\nargument --json\n"));
	assert_false(has_line(text, "argument --gpus-per-node"));
	free(text);
}

static void test_the_task_gets_all_gpus(void **state)
{
	int exit_code;
	(void)state;
	char *text = run("--json", 8, LIMIT_MS, &exit_code);
	assert_true(has_line(text, "argument --gpus-per-node=8\n"));
	free(text);
}

static void test_the_step_is_of_no_attempt(void **state)
{
	int exit_code;
	(void)state;
	setenv("WLB_ATTEMPT_ID", "1", 1);
	setenv("SLURM_WLB_TP", "2", 1);
	setenv("WLB_SPOOL_DIR", "/tmp", 1);
	char *text = run("--json", 0, LIMIT_MS, &exit_code);
	assert_false(has_line(text, "WLB_ATTEMPT_ID="));
	assert_false(has_line(text, "SLURM_WLB_TP="));
	assert_true(has_line(text, "WLB_SPOOL_DIR=/tmp\n"));
	assert_true(has_line(text, "SLURM_PMIX_FENCE=ring\n"));
	free(text);
}

static void test_a_step_that_hangs_is_ended(void **state)
{
	int exit_code;
	(void)state;
	assert_null(run("hang", 0, SHORT_MS, &exit_code));
	assert_int_equal(exit_code, 128 + SIGTERM);
}

/* It is read no faster than the caller looks at its other work, and is late as any other. */
static void test_a_step_that_writes_without_end_is_ended(void **state)
{
	int exit_code;
	(void)state;
	is_chatty = true;
	assert_null(run("hang", 0, SHORT_MS, &exit_code));
	is_chatty = false;
	assert_int_equal(exit_code, 128 + SIGTERM);
}

static void test_an_end_that_is_not_known_is_no_success(void **state)
{
	int exit_code;
	(void)state;
	signal(SIGCHLD, SIG_IGN);
	free(run("--json", 0, LIMIT_MS, &exit_code));
	signal(SIGCHLD, SIG_DFL);
	assert_int_equal(exit_code, 255);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_task_gets_the_whole_node),
		cmocka_unit_test(test_the_output_is_that_of_the_tasks),
		cmocka_unit_test(test_the_task_gets_all_gpus),
		cmocka_unit_test(test_the_step_is_of_no_attempt),
		cmocka_unit_test(test_a_step_that_hangs_is_ended),
		cmocka_unit_test(test_a_step_that_writes_without_end_is_ended),
		cmocka_unit_test(test_an_end_that_is_not_known_is_no_success),
	};
	return cmocka_run_group_tests(tests, make_srun, remove_srun);
}

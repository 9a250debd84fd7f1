#include "coordinator/wlb/run/links.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlb/run/signals.h"

enum {
	CHECK_MS = 30000,      /* for the whole check */
	END_MS = 2000,         /* for srun to end its step after SIGTERM */
	PAUSE_MS = 50,         /* between two looks at its output */
	OUTPUT_MOST = 4 << 20, /* bytes of output; a node has a line of names */
	NAMES_MOST = 4096,
	ARGUMENTS = 12,
};

static const char unreached_words[] = " does not reach ";

static bool is_among(const json_t *nodes, const char *name)
{
	for (size_t i = 0; i < json_array_size(nodes); i++)
		if (strcmp(json_string_value(json_array_get(nodes, i)), name) == 0)
			return true;
	return false;
}

/* Adds the names in `words`; returns how many may still be added. */
static int read_names(char *words, const json_t *nodes, int left, json_t *names)
{
	char *rest;
	for (char *name = strtok_r(words, " ", &rest); name != NULL && left > 0; name = strtok_r(NULL, " ", &rest))
		if (is_among(nodes, name)) {
			json_array_append_new(names, json_string(name));
			left--;
		}
	return left;
}

json_t *wlb_run_read_links(char *text, const json_t *nodes)
{
	json_t *unreached = json_object();
	int left = NAMES_MOST;
	char *rest;
	for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
		char *words = strstr(line, unreached_words);
		if (words == NULL)
			continue;
		*words = '\0';
		if (!is_among(nodes, line))
			continue;
		json_t *names = json_array();
		left = read_names(words + strlen(unreached_words), nodes, left, names);
		json_object_set_new(unreached, line, names);
	}
	return unreached;
}

/* The check is a step of its own: none of an attempt, which would have an agent and a layout. */
static void forget_attempt(void)
{
	static const char *const names[] = {"ATTEMPT_ID", "TP", "CP", "PP", "DP"};
	char name[64];
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(name, sizeof(name), "SLURM_WLB_%s", names[i]);
		unsetenv(name);
		unsetenv(name + strlen("SLURM_"));
	}
	unsetenv("SLURM_JOB_NODELIST"); /* as for an attempt: launch.c */
	setenv("SLURM_PMIX_FENCE", "ring", 1);
}

/* Runs in the child; does not return. */
static void exec_srun(const struct wlb_run *run, const char *const *arguments, pid_t parent, int output)
{
	int null = open("/dev/null", O_RDWR);
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	forget_attempt();
	dup2(null, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	dup2(null, STDERR_FILENO); /* MPI complains of what is looked for */
	sigprocmask(SIG_SETMASK, &run->signals_before, NULL);
	execvp("srun", (char *const *)arguments);
	_exit(127);
}

static char *fold_nodes(const json_t *nodes, struct wlb_error *error)
{
	size_t count = json_array_size(nodes);
	char *folded = NULL;
	char **names = calloc(count + 1, sizeof(*names));
	for (size_t i = 0; names != NULL && i < count; i++)
		names[i] = (char *)json_string_value(json_array_get(nodes, i));
	if (names != NULL)
		folded = wlb_hostlist_fold(names, (int)count, error);
	free(names);
	return folded;
}

static pid_t start_check(const struct wlb_run *run, const json_t *nodes, int output, struct wlb_error *error)
{
	char counts[2][64], self[PATH_MAX] = "wlb";
	pid_t parent = getpid(), child = -1;
	char *folded = fold_nodes(nodes, error), *list = NULL;
	if (folded == NULL || asprintf(&list, "--nodelist=%s", folded) < 0) {
		free(folded);
		return -1;
	}
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (length > 0)
		self[length] = '\0';
	for (int i = 0; i < 2; i++)
		snprintf(counts[i], sizeof(counts[i]), "--%s=%zu", i == 0 ? "nodes" : "ntasks", json_array_size(nodes));
	const char *const arguments[ARGUMENTS] = {"srun",        "--mpi=pmix", "--overlap",           list,
	                                          counts[0],     counts[1],    "--ntasks-per-node=1", self,
	                                          "check-links", NULL};
	child = fork();
	if (child == 0)
		exec_srun(run, arguments, parent, output);
	if (child < 0)
		wlb_fail(error, "srun cannot be started: %s", strerror(errno));
	free(list);
	free(folded);
	return child;
}

/* Reads what is there; returns false at its end. */
static bool read_some(int fd, FILE *text, size_t *bytes)
{
	char buffer[4096];
	ssize_t n;
	while ((n = read(fd, buffer, sizeof(buffer))) > 0)
		if ((*bytes += (size_t)n) <= OUTPUT_MOST)
			fwrite(buffer, 1, (size_t)n, text);
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Returns false where the check did not end in time, or the run has to end. */
static bool read_output(struct wlb_run *run, int fd, FILE *text)
{
	int64_t until_ms = wlb_clock_ms() + CHECK_MS;
	size_t bytes = 0;
	while (read_some(fd, text, &bytes))
		if (wlb_clock_left_ms(until_ms) == 0 || !wlb_run_pause(run, PAUSE_MS))
			return false;
	return true;
}

/* Ends srun and its step, which has ended unless the check was late. */
static void reap(pid_t srun)
{
	int64_t until_ms = wlb_clock_ms() + END_MS;
	kill(-srun, SIGTERM);
	while (waitpid(srun, NULL, WNOHANG) == 0) {
		if (wlb_clock_left_ms(until_ms) == 0)
			kill(-srun, SIGKILL);
		usleep(1000 * PAUSE_MS);
	}
}

json_t *wlb_run_check_links(struct wlb_run *run, const json_t *nodes, struct wlb_error *error)
{
	int ends[2];
	char *output = NULL;
	size_t bytes = 0;
	json_t *unreached = NULL;
	if (pipe2(ends, O_CLOEXEC) != 0) {
		wlb_fail(error, "no pipe for the output of the check: %s", strerror(errno));
		return NULL;
	}
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	FILE *text = open_memstream(&output, &bytes);
	pid_t srun = text != NULL ? start_check(run, nodes, ends[1], error) : -1;
	close(ends[1]);
	bool is_whole = srun > 0 && read_output(run, ends[0], text);
	close(ends[0]);
	if (srun > 0)
		reap(srun);
	if (text != NULL)
		fclose(text);
	if (is_whole)
		unreached = wlb_run_read_links(output, nodes);
	else if (srun > 0)
		wlb_fail(error, "the check of the links did not end within %d s", CHECK_MS / 1000);
	free(output);
	return unreached;
}

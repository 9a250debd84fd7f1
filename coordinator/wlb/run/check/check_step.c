#include "coordinator/wlb/run/check/check_step.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/child.h"
#include "common/clock.h"
#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlb/run/check/check_environment.h"

enum {
	END_MS = 2000,        /* for srun to end its step after SIGTERM, or after the end of its output */
	KILLED_MS = 500,      /* for srun to end after SIGKILL; one that hangs in the kernel cannot */
	OUTPUT_MAX = 4 << 20, /* bytes of output that are kept */
	TURN_MAX = 1 << 18,   /* bytes that are read before the caller goes on */
	ARGUMENTS_MAX = 32,
};

/* ---- srun -------------------------------------------------------------------------------------------------------- */

/* Runs in the child; does not return. */
static void exec_srun(const sigset_t *signals, const char *const *arguments, pid_t parent, int output)
{
	int null = open("/dev/null", O_RDWR);
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	wlb_check_environment_set();
	dup2(null, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	dup2(null, STDERR_FILENO); /* MPI complains of what is looked for */
	sigprocmask(SIG_SETMASK, signals, NULL);
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
	else
		wlb_fail(error, "out of memory for the names of %zu nodes", count);
	free(names);
	return folded;
}

/* Sets the words of srun's command line, NULL-terminated; words that are made here are in `options`. */
static void build_command(const struct wlb_check_command *command, const char *nodelist, char options[4][64],
                          const char *self, const char *arguments[ARGUMENTS_MAX])
{
	size_t count = json_array_size(command->nodes);
	int at = 0;
	snprintf(options[0], sizeof(options[0]), "--mpi=%s", command->mpi);
	snprintf(options[1], sizeof(options[1]), "--nodes=%zu", count);
	snprintf(options[2], sizeof(options[2]), "--ntasks=%zu", count);
	arguments[at++] = "srun";
	arguments[at++] = options[0];
	arguments[at++] = "--overlap";
	arguments[at++] = "--cpu-bind=none";
	arguments[at++] = nodelist;
	arguments[at++] = options[1];
	arguments[at++] = options[2];
	arguments[at++] = "--ntasks-per-node=1";
	if (command->gpus_per_node > 0) {
		/* A step that names none gets what the job asked for: of each task, the GPUs of one. */
		snprintf(options[3], sizeof(options[3]), "--gpus-per-node=%d", command->gpus_per_node);
		arguments[at++] = options[3];
	}
	arguments[at++] = self;
	for (int i = 0; command->words[i] != NULL && at < ARGUMENTS_MAX - 1; i++)
		arguments[at++] = command->words[i];
	arguments[at] = NULL;
}

static pid_t start_srun(const sigset_t *signals, const struct wlb_check_command *command, int output,
                        struct wlb_error *error)
{
	const char *arguments[ARGUMENTS_MAX];
	char options[4][64], self[PATH_MAX] = "wlb";
	char *folded = fold_nodes(command->nodes, error), *list = NULL;
	pid_t parent = getpid(), child = -1;
	if (folded == NULL)
		return -1;
	int length = asprintf(&list, "--nodelist=%s", folded);
	free(folded);
	if (length < 0)
		return wlb_fail(error, "out of memory for the names of %zu nodes", json_array_size(command->nodes));
	ssize_t self_length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (self_length > 0)
		self[self_length] = '\0';
	build_command(command, list, options, self, arguments);
	child = fork();
	if (child == 0)
		exec_srun(signals, arguments, parent, output);
	if (child < 0)
		wlb_fail(error, "srun cannot be started: %s", strerror(errno));
	free(list);
	return child;
}

/* ---- the step ---------------------------------------------------------------------------------------------------- */

int wlb_check_step_start(const sigset_t *signals, const struct wlb_check_command *command, struct wlb_check_step *step,
                         struct wlb_error *error)
{
	int ends[2];
	*step = (struct wlb_check_step){.output_fd = -1, .until_ms = wlb_clock_ms() + command->limit_ms};
	if (pipe2(ends, O_CLOEXEC) != 0)
		return wlb_fail(error, "no pipe for the output of a step: %s", strerror(errno));
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	step->stream = open_memstream(&step->text, &step->stream_bytes);
	if (step->stream == NULL)
		wlb_fail(error, "out of memory for the output of a step");
	pid_t srun = step->stream != NULL ? start_srun(signals, command, ends[1], error) : -1;
	close(ends[1]);
	if (srun > 0) {
		step->srun = srun;
		step->output_fd = ends[0];
		return 0;
	}
	close(ends[0]);
	if (step->stream != NULL)
		fclose(step->stream);
	free(step->text);
	*step = (struct wlb_check_step){.output_fd = -1};
	return -1;
}

enum wlb_check_progress wlb_check_step_poll(struct wlb_check_step *step)
{
	char buffer[4096];
	ssize_t n = 1;
	for (int turn = 0; turn < TURN_MAX && n > 0; turn += (int)n) {
		n = read(step->output_fd, buffer, sizeof(buffer));
		if (n > 0 && (step->bytes += (size_t)n) <= OUTPUT_MAX)
			fwrite(buffer, 1, (size_t)n, step->stream);
		if (n < 0)
			break;
	}
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		return WLB_CHECK_STEP_ENDED;
	return wlb_clock_left_ms(step->until_ms) == 0 ? WLB_CHECK_STEP_LATE : WLB_CHECK_STEP_RUNS;
}

/* Its output has ended, or it is late. */
static int reap(pid_t srun, bool is_late)
{
	int status;
	if (is_late)
		kill(-srun, SIGTERM);
	if (wlb_child_wait(srun, END_MS, &status) == 0) {
		kill(-srun, SIGKILL);
		wlb_child_wait(srun, KILLED_MS, &status);
	}
	return wlb_child_code(status);
}

int wlb_check_step_end(struct wlb_check_step *step, char **text)
{
	bool is_late = wlb_check_step_poll(step) != WLB_CHECK_STEP_ENDED;
	close(step->output_fd);
	int exit_code = reap(step->srun, is_late);
	fclose(step->stream);
	*text = step->text;
	*step = (struct wlb_check_step){.output_fd = -1};
	return exit_code;
}

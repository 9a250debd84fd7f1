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

enum {
	END_MS = 2000,        /* for srun to end its step after SIGTERM, or after the end of its output */
	KILLED_MS = 500,      /* for srun to end after SIGKILL; one that hangs in the kernel cannot */
	OUTPUT_MAX = 4 << 20, /* bytes of output that are kept */
	TURN_MAX = 1 << 18,   /* bytes that are read before the caller goes on */
	ARGUMENTS_MAX = 32,
};

/* ---- environment ------------------------------------------------------------------------------------------------- */

/* An attempt would have an agent and a layout. */
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

/* srun reads most of these variables as options, and sbatch sets them from the options of the job. They say what each
 * of the job's tasks gets: with --cpus-per-task srun implies --exact, and the only task of a check would get the CPUs
 * of one task, not of the node. Not every release of Slurm has all of them. */
static void forget_shares(void)
{
	static const char *const names[] = {
		/* OpenMP: it would bind the check itself to the CPUs of one place, and no other would be checked. */
		"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "OMP_THREAD_LIMIT",
		/* CPUs */
		"SLURM_CPUS_PER_TASK", "SRUN_CPUS_PER_TASK", "SLURM_CPUS_PER_GPU", "SLURM_EXACT", "SLURM_EXCLUSIVE",
		"SLURM_CORE_SPEC", "SLURM_THREAD_SPEC", "SLURM_THREADS_PER_CORE", "SLURM_HINT", "SLURM_NTASKS_PER_CORE",
		"SLURM_CPU_BIND",
		/* GPUs: an option of the command line gives the check all GPUs of the node. */
		"SLURM_GPUS", "SLURM_GPUS_PER_NODE", "SLURM_GPUS_PER_SOCKET", "SLURM_GPUS_PER_TASK", "SLURM_GPU_BIND",
		"SLURM_GRES", "SLURM_STEP_GRES", "SLURM_TRES_PER_TASK", "SLURM_TRES_BIND", "SLURM_NTASKS_PER_GPU",
		"SLURM_NTASKS_PER_TRES",
		/* Memory: a step that asks for none gets all of the job's. */
		"SLURM_MEM_PER_CPU", "SLURM_MEM_PER_GPU", "SLURM_MEM_PER_NODE", "SLURM_MEM_BIND",
		/* Nodes, of which the command line names each. */
		"SLURM_DISTRIBUTION", "SLURM_HOSTFILE", "SLURM_CONSTRAINT"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
}

/* The output of the tasks is read: a label before each line, or a file that takes the lines, would hide it. srun takes
 * the modes as its options --output, --error and --input. */
static void forget_output(void)
{
	static const char *const names[] = {"SLURM_LABELIO", "SLURM_STDOUTMODE", "SLURM_STDERRMODE", "SLURM_STDINMODE"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
}

/* Runs in the child that becomes srun: the step belongs to no attempt, and its task on a node gets all CPUs, memory and
 * GPUs that the job has there, whatever a task of the job gets. */
static void set_environment(void)
{
	forget_attempt();
	forget_shares();
	forget_output();
	setenv("SLURM_WAIT", "0", 1); /* the tasks of a check end one after the other */
}

/* ---- srun -------------------------------------------------------------------------------------------------------- */

/* Runs in the child; does not return. */
static void exec_srun(const sigset_t *signals, const char *const *arguments, pid_t parent, int output)
{
	int null = open("/dev/null", O_RDWR);
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	set_environment();
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

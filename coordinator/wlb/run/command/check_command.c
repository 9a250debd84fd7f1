#include "coordinator/wlb/run/command/check_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coordinator/wlb/run/command/command_words.h"
#include "coordinator/wlb/run/command/launcher.h"
#include "coordinator/wlb/run/command/program_word.h"

/* ---- programs that start the ranks ------------------------------------------------------------------------------- */

/* Each of these programs starts ranks on all nodes of the job. torchrun and others are no such programs: they start the
 * ranks of one node, and are started once on each node. The names of implementations are written out: mpirun.sh is a
 * script of the user's. */
static const char *const launchers[] = {"mpirun",        "mpirun.openmpi",  "mpirun.mpich",  "mpirun_rsh", "mpiexec",
                                        "mpiexec.hydra", "mpiexec.openmpi", "mpiexec.mpich", "orterun",    "prterun",
                                        "oshrun",        "horovodrun",      "srun"};

static bool is_launcher(const char *word)
{
	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++)
		if (strcmp(wlb_run_base_of(word), launchers[i]) == 0)
			return true;
	return false;
}

/* The user may have srun start fewer. */
static int task_count(const struct wlb_run *run)
{
	const struct wlb_run_job *job = &run->job;
	const char *named = wlb_run_srun_value(&run->options, 'n', "--ntasks");
	if (named != NULL)
		return atoi(named);
	return job->tasks > 0 ? job->tasks : job->node_count * job->tasks_per_node;
}

static int check_launcher(const struct wlb_run *run, struct wlb_error *error)
{
	const char *program = run->options.command[wlb_run_program_word(run->options.command)];
	int tasks = task_count(run);
	if (program == NULL || tasks <= 1 || !is_launcher(program))
		return 0;
	return wlb_fail(
		error,
		"%.200s: `wlb run` starts the %d tasks of the job itself, and each of them would start a job of its "
		"own by %.64s; give the program alone: `wlb run -- PROGRAM ARGUMENTS`, with options for srun in "
		"--srun-args",
		program, tasks, wlb_run_base_of(program));
}

/* ---- pipes of the shell ------------------------------------------------------------------------------------------ */

/* Returns whether the word is a file of this process, or an option with one, that is a pipe; not its standard files. */
static bool is_pipe_of_shell(const char *word)
{
	const char *equals = strchr(word, '='), *path = word[0] == '-' && equals != NULL ? equals + 1 : word;
	struct stat status;
	int fd, length = 0;
	if ((sscanf(path, "/dev/fd/%9d%n", &fd, &length) != 1 &&
	     sscanf(path, "/proc/self/fd/%9d%n", &fd, &length) != 1) ||
	    path[length] != '\0')
		return false;
	return fd > STDERR_FILENO && fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode);
}

static int check_pipe(const char *word, struct wlb_error *error)
{
	if (!is_pipe_of_shell(word))
		return 0;
	return wlb_fail(
		error,
		"%.200s: a pipe of the shell, such as <(...), which no rank can open and no second attempt can read "
		"again; write it to a file that the nodes share, and give the name of the file",
		word);
}

/* ---- the trainer ------------------------------------------------------------------------------------------------- */

/* Whether these words, "bash -ec TEXT", are a shell with a text: the words behind it are arguments of the shell. */
static bool is_shell_text(char *const *words)
{
	static const char *const shells[] = {"sh", "bash", "dash", "zsh", "ksh"};
	bool is_shell = false;
	for (size_t i = 0; words[0] != NULL && i < sizeof(shells) / sizeof(shells[0]); i++)
		is_shell = is_shell || strcmp(wlb_run_base_of(words[0]), shells[i]) == 0;
	for (int i = 1; is_shell && words[i] != NULL && words[i][0] == '-'; i++)
		if (words[i][1] != '-' && strchr(words[i], 'c') != NULL)
			return true;
	return false;
}

static int check_trainer(const struct wlb_run *run, struct wlb_error *error)
{
	const char *trainer = run->options.trainer;
	char *const *words = run->options.command;
	struct wlb_launcher launcher;
	if (run->options.planned_trainer != NULL && wlb_run_train_word(words) >= 0)
		return wlb_fail(error,
		                "--trainer %.300s: the command is wlb-worker, which is planned as itself; leave "
		                "--trainer out",
		                run->options.planned_trainer);
	if (trainer == NULL)
		return 0;
	char *const *program =
		words + (wlb_launcher_find(words, &launcher) ? launcher.script : wlb_run_program_word(words));
	if (run->job.off)
		return wlb_fail(error, "--for=%s: this job has no layout to tell; add --wlb-layout=auto to sbatch",
		                trainer);
	if (wlb_run_train_word(words) >= 0)
		return wlb_fail(error,
		                "--for=%s: the command is wlb-worker, which finds its layout itself; leave --for out",
		                trainer);
	if (!is_shell_text(program))
		return 0;
	return wlb_fail(
		error,
		"--for=%s: the trainer's options cannot be added to a text for a shell, `%.40s -c ...`; give its "
		"command to wlb run itself, or a script that ends with \"$@\": `wlb run --for=%s -- ./train.sh`",
		trainer, program[0], trainer);
}

int wlb_run_check_command(const struct wlb_run *run, struct wlb_error *error)
{
	const struct wlb_run_options *options = &run->options;
	int rc = check_launcher(run, error);
	if (rc == 0)
		rc = check_trainer(run, error);
	for (int i = 0; rc == 0 && !run->job.off && options->command[i] != NULL; i++)
		rc = check_pipe(options->command[i], error);
	for (int i = 0; rc == 0 && !run->job.off && i < options->srun_arg_count; i++)
		rc = check_pipe(options->srun_args[i], error);
	return rc;
}

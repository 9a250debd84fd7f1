/* wlb run: runs a command to its end on the remaining nodes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlb/commands.h"
#include "coordinator/wlb/run/attempt/attempt.h"
#include "coordinator/wlb/run/attempt/launch.h"
#include "coordinator/wlb/run/attempt/start_command.h"
#include "coordinator/wlb/run/attempt/watch.h"
#include "coordinator/wlb/run/check/suspects.h"
#include "coordinator/wlb/run/command/check_command.h"
#include "coordinator/wlb/run/command/input.h"
#include "coordinator/wlb/run/command/trainer.h"
#include "coordinator/wlb/run/follow/follower.h"
#include "coordinator/wlb/run/follow/left_files.h"
#include "coordinator/wlb/run/loop/attempts.h"
#include "coordinator/wlb/run/state/deliver_records.h"
#include "coordinator/wlb/run/state/job.h"
#include "coordinator/wlb/run/state/job_tasks.h"
#include "coordinator/wlb/run/state/journal.h"
#include "coordinator/wlb/run/state/old_files.h"
#include "coordinator/wlb/run/state/print.h"
#include "coordinator/wlb/run/state/run_identity.h"
#include "coordinator/wlb/run/state/state.h"
#include "coordinator/wlb/run/stop/grow.h"
#include "coordinator/wlb/run/stop/parent.h"
#include "coordinator/wlb/run/stop/save_and_requeue.h"
#include "coordinator/wlb/run/stop/signals.h"
#include "coordinator/wlb/run/stop/time_limit.h"

static void open_coordinator(struct wlb_run *run)
{
	struct wlb_error error;
	if (wlb_client_config_load(&run->config, &error) == 0)
		run->connection = wlb_connection_new(&run->config);
	if (run->connection == NULL)
		wlb_run_print("this run is neither recorded nor restarted: %s", error.message);
}

/* Returns -1 with the reason where another `wlb run` of the job has its name. */
static int name_run(struct wlb_run *run, struct wlb_error *error)
{
	const char *id = getenv("WLB_RUN_ID");
	if (wlb_run_identify(run, error) != 0)
		return -1;
	if (id != NULL && *id != '\0' && run->launch == 1)
		snprintf(run->id, sizeof(run->id), "%s", id);
	else if (run->launch == 1)
		snprintf(run->id, sizeof(run->id), "%u", run->job.job_id);
	else
		snprintf(run->id, sizeof(run->id), "%u.%d", run->job.job_id, run->launch);
	return 0;
}

/* --wlb-layout=off: runs srun and nothing else. */
static int run_plain(struct wlb_run *run)
{
	struct wlb_attempt attempt = {.number = 1};
	struct wlb_error error;
	int code = WLB_EXIT_FAILED;
	int srun_stderr;
	pid_t srun = -1;
	wlb_run_print(
		"this job has no --wlb-layout (or off): the command runs once, neither recorded nor started again");
	if (wlb_attempt_new_id(attempt.id, &error) == 0 && wlb_attempt_decide_alone(run, &attempt, &error) == 0)
		srun = wlb_run_launch(run, &attempt, &srun_stderr, &error);
	if (srun > 0) {
		wlb_run_watch(run, &attempt, srun, srun_stderr, NULL);
		code = attempt.exit_code;
		if (attempt.is_refused)
			wlb_run_print("%s", attempt.end_reason);
	} else {
		wlb_run_print("%s", error.message);
	}
	wlb_attempt_free(&attempt);
	return code;
}

static int start(struct wlb_run *run, struct wlb_error *error)
{
	if (run->job.off)
		return run_plain(run);
	if (name_run(run, error) != 0)
		return WLB_EXIT_USAGE;
	if (run->launch == 1)
		wlb_run_old_files_remove(&run->job);
	wlb_run_limit_open(run);
	wlb_run_print_why_not_requeued(run);
	wlb_run_grow_open(run, wlb_run_continues_from_save(run));
	open_coordinator(run);
	wlb_run_take_left_files(&run->job);
	wlb_run_deliver_others(run);
	wlb_run_input_open(run);
	return wlb_run_attempts(run);
}

/* Splits the values of --srun-args into words. */
static int split_srun_args(struct wlb_run_options *o, struct wlb_error *error)
{
	for (int i = 0; i < o->srun_words.count; i++)
		for (char *word = strtok(o->srun_words.texts[i], " \t"); word != NULL; word = strtok(NULL, " \t")) {
			char **more = reallocarray(o->srun_args, (size_t)o->srun_arg_count + 1, sizeof(*more));
			if (more == NULL)
				return wlb_fail(error, "--srun-args: out of memory");
			o->srun_args = more;
			o->srun_args[o->srun_arg_count++] = word;
		}
	return 0;
}

static void open_journal(struct wlb_run *run)
{
	struct wlb_error error;
	if (!run->job.off && wlb_run_journal_open(run, &error) != 0)
		wlb_run_print("%s", error.message);
}

/* What the job and the command are. Returns -1 with what is wrong about them. */
static int load_job(struct wlb_run *run, struct wlb_error *error)
{
	if (run->options.name != NULL && wlb_run_identity_check_name(run->options.name, error) != 0)
		return -1;
	if (wlb_run_limit_read_option(run, error) != 0 || wlb_run_job_load(&run->job, &run->options, error) != 0)
		return -1;
	open_journal(run);
	wlb_run_launcher_tasks(run);
	return wlb_run_job_tasks(run, error) != 0 || wlb_run_check_launcher(run, error) != 0 ||
	                       wlb_run_check_command(run, error) != 0 ||
	                       wlb_run_check_step_pattern(&run->options, error) != 0
	               ? -1
	               : 0;
}

static int run_command(void *values, struct wlb_error *error)
{
	struct wlb_run_suspects suspects = {0};
	struct wlb_run run = {.signal_fd = -1,
	                      .parent_fd = -1,
	                      .journal.fd = -1,
	                      .suspects = &suspects,
	                      .progress = {.fd = -1, .saved_step = -1},
	                      .options = *(struct wlb_run_options *)values};
	int code;
	wlb_run_input_reserve();
	wlb_run_parent_open(&run);
	if (wlb_run_signals_block(&run, error) != 0 || split_srun_args(&run.options, error) != 0)
		code = WLB_EXIT_FAILED;
	else if (load_job(&run, error) != 0)
		code = WLB_EXIT_USAGE;
	else
		code = start(&run, error);
	wlb_run_parent_close(&run);
	wlb_run_input_close(&run.input);
	wlb_connection_free(run.connection);
	json_decref(run.calibration);
	wlb_run_job_free(&run.job);
	free(run.options.srun_args);
	if (run.signal_fd >= 0)
		close(run.signal_fd);
	wlb_run_journal_close(&run);
	wlb_slurm_close();
	return code;
}

#define FIELD(name) offsetof(struct wlb_run_options, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(COMMAND, NULL, FIELD(command), "COMMAND [ARGUMENTS]", "what to run, such as wlb-worker train ..."),
         .required = true},
	{WLB_OPTION(
		 INT, "tasks-per-node", FIELD(tasks_per_node), "N",
		 "tasks on each node (default: as the job was submitted; else one for each GPU; else as many as fit, "
		 "SLURM_TASKS_PER_NODE)"),
         .min = 1, .max = 4096},
	{WLB_OPTION(
		TEXT, "spool-dir", FIELD(spool_dir), "DIR",
		"where records wait for the coordinator, on a file system that all nodes share (default: "
		"WLB_SPOOL_DIR, else .wlb in the submit directory, SLURM_SUBMIT_DIR); where DIR is another's or others "
		"may write to it, they wait in .wlb-UID of the job's user in DIR, and beside .wlb")},
	{WLB_OPTION(
		 INT, "max-restarts", FIELD(max_restarts), "N",
		 "end the run after N restarts; those of attempts that saved and stopped when asked to do not count"),
         .max = 1000000, .initial = "100"},
	{WLB_OPTION(INT, "wait", FIELD(wait_s), "SECONDS",
                    "after a fault, wait this long for a coordinator that is unavailable; the start does not "
                    "wait for one"),
         .max = 86400, .initial = "300"},
	{WLB_OPTION(
		TEXT, "stop-before-end", FIELD(stop_before_end), "SECONDS",
		"ask COMMAND, by SIGUSR1 and this many seconds before the job's time limit, to save a checkpoint and "
		"stop; then requeue the job, if it was submitted with --requeue, so that the run continues from that "
		"checkpoint; 0: never; half of the time that the job has left at the start of wlb run, where SECONDS "
		"are not less than all of it (default: for wlb-worker train 3 x its longest save + its longest step, "
		"of the newest 4 to 8 saves and 100 to 200 steps, at least 30 and at most half of that time, and "
		"before its first save a twentieth of it, 300 at most; for other commands 0, because SIGUSR1 kills a "
		"command that does not handle it)")},
	{WLB_OPTION(TEXT, "name", FIELD(name), "NAME",
                    "which run of its script this is, for a script with several: a job that is requeued continues it "
                    "by this name, whatever the words of COMMAND are; 1 to 63 letters, digits, dots, underscores and "
                    "hyphens (default: by the words and the directory of COMMAND, and by their order among equal "
                    "ones)")},
	{WLB_OPTION(
		FLAG, "keep-command", FIELD(keep_command), NULL,
		"start COMMAND as it is (default: where it is torchrun, ft_launcher, accelerate launch or deepspeed "
		"--no_ssh, its options that depend on the nodes, such as --nnodes, are replaced in each attempt)")},
	{WLB_OPTION(TEXT, "for", FIELD(trainer), NULL,
                    "add the layout of each attempt to the end of COMMAND, as options of this trainer; those that "
                    "COMMAND has stay, and the layout is planned around them; after the first attempt only the number "
                    "of replicas changes, unless the trainer reads its checkpoint in another layout (megatron: "
                    "--ckpt-format torch_dist, and with --use-distributed-optimizer "
                    "--dist-ckpt-optim-fully-reshardable)"),
         .choices = WLB_TRAINER_NAMES},
	{WLB_OPTION(
		TEXT, "trainer", FIELD(planned_trainer), "NAME|FILE",
		"the program by whose step and memory --wlb-layout=auto plans COMMAND, as --trainer of wlb plan has "
		"them (default: that of --for, else megatron; wlb-worker is planned as itself)")},
	{WLB_OPTION(CHOICE, "on-rank-exit", FIELD(on_rank_exit), NULL,
                    "what the death of a rank does to the others: end them, and start COMMAND again on the nodes that "
                    "remain; or continue, for a trainer that repairs itself: each death is recorded, and the attempt "
                    "goes on until all ranks have ended, or fewer nodes than --wlb-min-nodes are left; it has "
                    "succeeded where a rank has"),
         .choices = "end|continue", .initial = "end"},
	{WLB_OPTION(
		TEXT, "follow-tensorboard", FIELD(follow_tensorboard), "DIR",
		"read steps and losses for the run's record from the event files of TensorBoard below DIR (default: "
		"the folder that COMMAND names, as by --tensorboard-dir or --logging-dir)")},
	{WLB_OPTION(
		TEXT, "step-pattern", FIELD(step_pattern), "REGEX",
		"read them from lines of the job's output file that this extended regular expression matches (default: "
		"as Megatron-LM, torchtitan, nanotron, Hugging Face's Trainer and Lightning print them); groups named "
		"step, loss, tokens or as the value is, (?P<step>[0-9]+), else the first is the step, the second the "
		"loss, the third the tokens")},
	{WLB_OPTION(
		FLAG, "no-hook", FIELD(no_hook), NULL,
		"leave Python in the ranks as it is (default: a hook in the first rank's Python tells of the steps of "
		"torch's optimizers, scalars of TensorBoard and saves)")},
	{WLB_OPTION(LIST, "srun-args", FIELD(srun_words), "ARGS",
                    "more options for srun, separated by spaces, which override those of wlb run; may be given several "
                    "times")},
};

static const struct wlb_option_table table = {
	.command = "wlb run",
	.about = "Inside a Slurm job (sbatch or salloc): starts COMMAND on the job's nodes with srun and PMIx, and "
		 "after the loss of a rank or node starts it again on the remaining nodes, until it succeeds or "
		 "nothing more can be done. Submit the job with --no-kill, or Slurm ends all of it when one node is "
		 "lost. COMMAND finds its layout in WLB_TP, WLB_CP, WLB_PP, WLB_DP, or as options (--for). A job "
		 "without --wlb-layout, or with off, gets one srun and nothing else.",
	.notes = "Exit code: that of the last attempt, which is that of its first task to fail (128 + signal if "
		 "killed); 0 only when COMMAND succeeded; 2 for wrong usage; 85 when COMMAND was asked to "
		 "save and stop, and has.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_command_run = {
	.name = "run",
	.summary = "Run a command in this Slurm job, and again after a fault",
	.options = &table,
	.values_bytes = sizeof(struct wlb_run_options),
	.run = run_command,
};

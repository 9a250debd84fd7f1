#include "coordinator/wlb/run/attempt/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/node_order.h"
#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlb/run/attempt/first_error.h"
#include "coordinator/wlb/run/attempt/host_list.h"
#include "coordinator/wlb/run/command/input.h"
#include "coordinator/wlb/run/follow/follower.h"
#include "coordinator/wlb/run/follow/hook.h"
#include "coordinator/wlb/run/state/print.h"
#include "coordinator/wlb/run/stop/stop_file.h"

enum { ARGUMENTS_OF_OURS = 16, COUNTS = 3, COUNT_BYTES = 64 };

/* Sets NAME, and SLURM_NAME, which srun passes on also with --export=NONE; the plugin then restores NAME. */
static void export_variable(const char *name, const char *value)
{
	char slurm_name[64];
	snprintf(slurm_name, sizeof(slurm_name), "SLURM_%s", name);
	setenv(name, value, 1);
	setenv(slurm_name, value, 1);
}

static void export_number(const char *name, int64_t value)
{
	char text[24];
	snprintf(text, sizeof(text), "%" PRId64, value);
	export_variable(name, text);
}

/* An earlier attempt may have set them, and this one has fewer. */
static void forget_attempt(void)
{
	static const char *const names[] = {"WLB_CHECKPOINT_STEP",
	                                    "WLB_CHECKPOINT_PATH",
	                                    "WLB_TP",
	                                    "WLB_CP",
	                                    "WLB_PP",
	                                    "WLB_DP",
	                                    "WLB_MICRO_BATCH_SIZE",
	                                    "WLB_INTERLEAVE",
	                                    "WLB_RECOMPUTE",
	                                    "WLB_RECOMPUTE_LAYERS",
	                                    "WLB_HEAD_STAGES",
	                                    "WLB_PACKING",
	                                    "WLB_MASTER_ADDR",
	                                    "WLB_MASTER_PORT",
	                                    "WLB_RENDEZVOUS",
	                                    "WLB_ERROR_FILES",
	                                    "WLB_METRICS_FILES",
	                                    "WLB_HOOK_FILE",
	                                    "WLB_HOOK_FOLDER",
	                                    "WLB_HOOK_NODE",
	                                    "WLB_HOOK_COPY",
	                                    "WLB_STOP_FILE"};
	char slurm_name[64];
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(slurm_name, sizeof(slurm_name), "SLURM_%s", names[i]);
		unsetenv(names[i]);
		unsetenv(slurm_name);
	}
}

static void export_checkpoint(const struct wlb_attempt *attempt)
{
	if (attempt->checkpoint_step > 0)
		export_number("WLB_CHECKPOINT_STEP", attempt->checkpoint_step);
	if (attempt->checkpoint_step > 0 && attempt->checkpoint_path != NULL)
		export_variable("WLB_CHECKPOINT_PATH", attempt->checkpoint_path);
}

/* The layout of a launcher's ranks has more of them than the step has tasks, and is told by options: the plugin knows a
 * step of the attempt by a layout of the step's size. */
static struct wlb_layout layout_of_tasks(const struct wlb_attempt *attempt)
{
	int tasks = wlb_attempt_tasks(attempt);
	return wlb_layout_ranks(&attempt->layout) == tasks
	               ? attempt->layout
	               : (struct wlb_layout){.tp = 1, .cp = 1, .pp = 1, .dp = tasks};
}

static void export_layout(const struct wlb_attempt *attempt)
{
	const struct wlb_layout layout = layout_of_tasks(attempt);
	if (attempt->has_layout) {
		export_number("WLB_TP", layout.tp);
		export_number("WLB_CP", layout.cp);
		export_number("WLB_PP", layout.pp);
		export_number("WLB_DP", layout.dp);
	}
	if (attempt->settings.micro_batch_size > 0) {
		export_number("WLB_MICRO_BATCH_SIZE", attempt->settings.micro_batch_size);
		export_number("WLB_INTERLEAVE", attempt->settings.interleave);
		export_variable("WLB_RECOMPUTE", attempt->settings.recompute);
		export_number("WLB_RECOMPUTE_LAYERS", attempt->settings.recompute_layers);
		export_variable("WLB_HEAD_STAGES", attempt->settings.shared_head ? "all" : "last");
		export_variable("WLB_PACKING", attempt->settings.dynamic ? "dynamic" : "balanced");
	}
}

static void export_hook(const struct wlb_run *run, const struct wlb_attempt *attempt)
{
	struct wlb_run_hook hook;
	if (!wlb_run_hook_find(run, attempt, &hook) || !wlb_run_hook_file_is_there(wlb_run_hook_read_from(&hook)))
		return;
	export_variable("WLB_HOOK_FILE", hook.file);
	export_variable("WLB_HOOK_FOLDER", hook.folder);
	export_variable("WLB_HOOK_NODE", hook.node);
	if (hook.copy[0] != '\0')
		export_variable("WLB_HOOK_COPY", hook.copy);
}

/* From which the plugin sets the variables of each task. A WORLD_SIZE that the script has set to the tasks of the whole
 * job is that of its first attempt. */
static void export_rendezvous(const struct wlb_run *run, const struct wlb_attempt *attempt)
{
	const struct wlb_rendezvous *rendezvous = &attempt->rendezvous;
	const char *given = getenv("WORLD_SIZE");
	char files[PATH_MAX];
	export_number("WLB_WORLD_SIZE", wlb_attempt_tasks(attempt));
	wlb_run_error_files(&run->job, attempt->id, files, sizeof(files));
	if (files[0] != '\0')
		export_variable("WLB_ERROR_FILES", files);
	wlb_run_metrics_files(&run->job, attempt->id, files, sizeof(files));
	if (files[0] != '\0')
		export_variable("WLB_METRICS_FILES", files);
	export_hook(run, attempt);
	wlb_run_stop_file_path(&run->job, attempt->id, files, sizeof(files));
	if (files[0] != '\0' && access(files, W_OK) == 0)
		export_variable("WLB_STOP_FILE", files);
	if (rendezvous->port == 0)
		return;
	export_variable("WLB_MASTER_ADDR", rendezvous->address);
	export_number("WLB_MASTER_PORT", rendezvous->port);
	if (!run->options.keep_command)
		export_variable("WLB_RENDEZVOUS", rendezvous->id);
	if (given != NULL && atoi(given) == run->job.first_node_count * run->job.tasks_per_node)
		unsetenv("WORLD_SIZE");
}

static void set_environment(const struct wlb_run *run, const struct wlb_attempt *attempt, const char *node_order)
{
	const char *cpus = getenv("SLURM_CPUS_PER_TASK");
	if (!run->job.off)
		forget_attempt();
	if (run->id[0] != '\0')
		export_variable("WLB_RUN_ID", run->id);
	export_variable("WLB_ATTEMPT_ID", attempt->id);
	export_number("WLB_ATTEMPT", attempt->number);
	if (run->job.spool_dir[0] != '\0')
		export_variable("WLB_SPOOL_DIR", run->job.spool_dir);
	export_checkpoint(attempt);
	export_layout(attempt);
	if (!run->job.off)
		export_rendezvous(run, attempt);
	if (run->limit.may_be_preempted)
		export_number("WLB_TERM_HOLD_S", WLB_RUN_TERM_HOLD_S);
	unsetenv(WLB_NODE_ORDER);
	if (node_order != NULL)
		setenv(WLB_NODE_ORDER, node_order, 1);
	/* Slurm's tree fence returns early on few nodes, on every release: docs/slurm-versions.md. */
	setenv("SLURM_PMIX_FENCE", "ring", 1);
	/* With the list of the job, two nodes may wait for each other in their first fences. srun sets that of
	 * the step. */
	unsetenv("SLURM_JOB_NODELIST");
	/* srun reads these two as options, and refuses such options beside --ntasks-per-node. */
	if (run->job.tasks == 0) {
		unsetenv("SLURM_NTASKS_PER_GPU");
		unsetenv("SLURM_NTASKS_PER_TRES");
	}
	/* From 22.05 to 24.11 srun does not read SLURM_CPUS_PER_TASK. */
	if (cpus != NULL)
		setenv("SRUN_CPUS_PER_TASK", cpus, 0);
}

/* The command line of srun, with the strings that are made for it. */
struct command_line {
	const char **arguments;
	struct wlb_host_list hosts;
	char *nodelist;
	char counts[COUNTS][COUNT_BYTES];
	char distribution[128];
};

/* Ranks fill one node after the other, so that neighbours share a node, however the job was submitted; the distribution
 * over the sockets and cores of a node ("cyclic:fcyclic") stays as the user set it. srun takes none with a list of
 * nodes. */
static void set_distribution(struct wlb_run *run, const struct wlb_host_list *hosts, char *option, size_t size)
{
	const char *asked = getenv("SLURM_DISTRIBUTION");
	const char *on_node = asked != NULL ? strchr(asked, ':') : NULL;
	bool is_kept = hosts->order == NULL && on_node != NULL;
	snprintf(option, size, "--distribution=%s%s", hosts->order != NULL ? "arbitrary" : "block",
	         is_kept ? on_node : "");
	if (is_kept || on_node == NULL || run->is_distribution_printed)
		return;
	run->is_distribution_printed = true;
	wlb_run_print("--distribution=%.100s: the part from ':' on is ignored, since srun accepts it only where ranks "
	              "fill all nodes in Slurm's order; add --cpu-bind to --srun-args to place the tasks of a node",
	              asked);
}

/* Sets the nodes of srun: by name, or by a file with a line for each rank where ranks fill them in another order. */
static int set_nodes(const struct wlb_run *run, const struct wlb_attempt *attempt, struct command_line *line,
                     struct wlb_error *error)
{
	int n;
	if (!run->job.off && wlb_run_host_list(attempt, &line->hosts, error) < 0)
		return -1;
	if (line->hosts.order != NULL) {
		n = asprintf(&line->nodelist, "--nodelist=/proc/self/fd/%d", line->hosts.fd);
	} else {
		char *nodes = wlb_hostlist_fold(attempt->nodes, attempt->node_count, error);
		if (nodes == NULL)
			return -1;
		n = asprintf(&line->nodelist, "--nodelist=%s", nodes);
		free(nodes);
	}
	return n >= 0 ? 0 : wlb_fail(error, "out of memory for a command line");
}

/* Returns how many options it wrote. With --wlb-layout=off Slurm distributes the job's tasks over its nodes as any
 * job's. */
static int write_counts(const struct wlb_run *run, const struct wlb_attempt *attempt, char counts[COUNTS][COUNT_BYTES])
{
	int tasks = run->job.tasks > 0 ? run->job.tasks : wlb_attempt_tasks(attempt);
	snprintf(counts[0], COUNT_BYTES, "--nodes=%d", attempt->node_count);
	snprintf(counts[1], COUNT_BYTES, "--ntasks=%d", tasks);
	snprintf(counts[2], COUNT_BYTES, "--ntasks-per-node=%d", attempt->tasks_per_node);
	return run->job.tasks > 0 ? COUNTS - 1 : COUNTS;
}

static int build_command(struct wlb_run *run, const struct wlb_attempt *attempt, struct command_line *line,
                         struct wlb_error *error)
{
	int words = 0, at = 0;
	char *const *command = attempt->command != NULL ? attempt->command : run->options.command;
	while (command[words] != NULL)
		words++;
	if (set_nodes(run, attempt, line, error) < 0)
		return -1;
	line->arguments = calloc((size_t)(ARGUMENTS_OF_OURS + run->options.srun_arg_count + words), sizeof(char *));
	if (line->arguments == NULL)
		return wlb_fail(error, "out of memory for a command line");
	int counts = write_counts(run, attempt, line->counts);
	const char **a = line->arguments;
	a[at++] = "srun";
	a[at++] = "--mpi=pmix";
	bool goes_on = run->options.on_rank_exit == WLB_ON_RANK_EXIT_CONTINUE;
	a[at++] = goes_on ? "--kill-on-bad-exit=0" : "--kill-on-bad-exit=1";
	if (goes_on)
		a[at++] = "--no-kill";
	/* The job's CPUs that a dead node still holds must not delay the next attempt. */
	a[at++] = "--overlap";
	/* What the attempt before wrote to files of srun's --output and --error says why it failed. */
	if (!run->job.off && (attempt->number > 1 || run->job.restart_count > 0) && getenv("SLURM_OPEN_MODE") == NULL)
		a[at++] = "--open-mode=append";
	/* A site's WaitTime would end ranks that save for longer than the first one. */
	if (getenv("SLURM_WAIT") == NULL)
		a[at++] = "--wait=0";
	if (run->job.shares_cpus)
		a[at++] = "--overcommit";
	a[at++] = line->nodelist;
	for (int i = 0; i < counts; i++)
		a[at++] = line->counts[i];
	if (!run->job.off) {
		set_distribution(run, &line->hosts, line->distribution, sizeof(line->distribution));
		a[at++] = line->distribution;
	}
	for (int i = 0; i < run->options.srun_arg_count; i++)
		a[at++] = run->options.srun_args[i];
	for (int i = 0; i < words; i++)
		a[at++] = command[i];
	return 0;
}

/* Runs in the child: makes a process group of its own, which ends when `wlb run` is gone. Does not return. */
static void exec_srun(const struct wlb_run *run, const struct command_line *line, pid_t parent, int stderr_fd)
{
	setpgid(0, 0);
	/* Where slurmstepd is dead the agent of this node kills all processes of the attempt on the node. The agent
	 * knows them by their environment, which srun must not have. */
	unsetenv("SLURMD_NODENAME");
	/* SIGTERM, not SIGKILL: srun then ends its tasks too. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	wlb_run_input_take(&run->input);
	dup2(stderr_fd, STDERR_FILENO);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &run->signals_before, NULL);
	execvp("srun", (char *const *)line->arguments);
	fprintf(stderr, "wlb: srun cannot be run: %s\n", strerror(errno));
	_exit(127);
}

pid_t wlb_run_launch(struct wlb_run *run, const struct wlb_attempt *attempt, int *srun_stderr, struct wlb_error *error)
{
	struct command_line line = {.hosts.fd = -1};
	int ends[2] = {-1, -1};
	pid_t child = -1, parent = getpid();
	if (pipe2(ends, O_CLOEXEC) != 0) {
		wlb_fail(error, "srun cannot be started: no pipe for its stderr: %s", strerror(errno));
	} else if (build_command(run, attempt, &line, error) == 0 && wlb_run_input_begin(&run->input, error) == 0) {
		set_environment(run, attempt, line.hosts.order);
		child = fork();
		if (child == 0)
			exec_srun(run, &line, parent, ends[1]);
		if (child < 0)
			wlb_fail(error, "srun cannot be started: %s", strerror(errno));
		else
			setpgid(child, child);
	}
	wlb_run_host_list_free(&line.hosts);
	free(line.nodelist);
	free(line.arguments);
	if (ends[1] >= 0)
		close(ends[1]);
	if (child < 0 && ends[0] >= 0)
		close(ends[0]);
	if (child < 0)
		wlb_run_input_end(&run->input);
	*srun_stderr = ends[0];
	return child;
}

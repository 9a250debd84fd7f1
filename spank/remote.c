/* slurmstepd: the environment of the batch script and of every task, and the announcement of the run. */
#include "spank/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <slurm/slurm.h> /* SLURM_BATCH_SCRIPT, SLURM_MAX_NORMAL_STEP_ID */

#include "spank/agent.h"
#include "spank/announce.h"
#include "spank/delivery.h"
#include "spank/environment.h"
#include "spank/model_path.h"
#include "spank/own_step.h"
#include "spank/program.h"
#include "spank/state_dir.h"
#include "spank/step_layout.h"
#include "spank/task_variables.h"
#include "spank/workarounds/stale_pmix.h"
#include "spank/workarounds/stuck_stepd.h"

/* Finds the name that `wlb run` set (JOBID.2 and so on) if it is of this job, else the job's id. */
static void find_run_id(spank_t sp, uint32_t job_id, char *run_id, size_t size)
{
	char job[16];
	int length = snprintf(job, sizeof(job), "%u", job_id);
	wlb_environment_get(sp, "SLURM_WLB_RUN_ID", run_id, size);
	if (strncmp(run_id, job, (size_t)length) != 0 || (run_id[length] != '\0' && run_id[length] != '.'))
		snprintf(run_id, size, "%s", job);
}

/* Reads options that Slurm did not pass from the environment, where submit.c has put them. */
static void restore_options(spank_t sp, struct wlb_spank_options *options)
{
	char value[PATH_MAX];
	if (options->text[WLB_JOB_LAYOUT][0] != '\0')
		return;
	for (int i = 0; i < WLB_JOB_OPTION_COUNT; i++) {
		wlb_environment_get(sp, wlb_job_options[i].variable, value, sizeof(value));
		if (value[0] != '\0')
			wlb_spank_options_take(options, i, value, false, NULL);
	}
}

/* Makes the path of the model absolute; it was typed relative to where the job was submitted. */
static void tell_long_model(const char *model, size_t most)
{
	struct wlb_error error;
	wlb_fail(&error, "the absolute path of %.200s has more than %zu bytes", model, most);
	slurm_error("wlb: %s", error.message);
}

static void resolve_model(spank_t sp, char *model)
{
	char known[PATH_MAX], submit_dir[PATH_MAX], path[PATH_MAX];
	if (model[0] == '\0')
		return;
	wlb_environment_get(sp, wlb_job_options[WLB_JOB_MODEL].variable, known, sizeof(known));
	wlb_environment_get(sp, "SLURM_SUBMIT_DIR", submit_dir, sizeof(submit_dir));
	if (wlb_model_path_resolve(model, known, submit_dir, path, sizeof(path)) == 0)
		strcpy(model, path);
	else
		tell_long_model(model, sizeof(path) - 1);
}

static void set_policy(spank_t sp, const struct wlb_spank_options *options)
{
	for (int i = 0; i < WLB_JOB_OPTION_COUNT; i++)
		if (options->text[i][0] != '\0')
			wlb_environment_set(sp, wlb_job_options[i].variable + strlen("SLURM_WLB_"), options->text[i]);
}

static void set_coordinator(spank_t sp, const struct wlb_spank_args *args)
{
	if (args->coordinator[0] != '\0')
		wlb_environment_set(sp, "COORDINATOR", args->coordinator);
	if (args->client.munge_socket[0] != '\0')
		wlb_environment_set(sp, "MUNGE_SOCKET", args->client.munge_socket);
	if (args->client.coordinator_user[0] != '\0')
		wlb_environment_set(sp, "COORDINATOR_USER", args->client.coordinator_user);
}

static void announce(spank_t sp, const struct wlb_spank *plugin, struct wlb_announcement *announcement)
{
	char cluster[256], job_name[1024], nodes[8192];
	wlb_environment_get(sp, "SLURM_CLUSTER_NAME", cluster, sizeof(cluster));
	wlb_environment_get(sp, "SLURM_JOB_NAME", job_name, sizeof(job_name));
	wlb_environment_get(sp, "SLURM_JOB_NODELIST", nodes, sizeof(nodes));
	announcement->cluster = cluster;
	announcement->job_name = job_name;
	announcement->nodes = nodes;
	struct wlb_error error;
	char *body = wlb_announce_body(announcement);
	int result = body ? wlb_announce(&plugin->args, body, &error) : wlb_fail(&error, "no memory");
	free(body);
	if (result != 0)
		slurm_error("wlb: run %s is not announced: %s; the job starts all the same, and is recorded later",
		            announcement->run_id, error.message);
}

/* Notes this slurmstepd for the epilog, where it is of a numbered step. */
static void note_stepd(spank_t sp, const struct wlb_spank_args *args)
{
	uint32_t job_id = 0, step_id = 0;
	if (spank_get_item(sp, S_JOB_ID, &job_id) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_STEPID, &step_id) != ESPANK_SUCCESS || step_id > SLURM_MAX_NORMAL_STEP_ID)
		return;
	int note = wlb_state_note_open(args, job_id, WLB_STATE_STEPDS, O_WRONLY | O_APPEND | O_CREAT);
	if (note < 0) {
		slurm_debug("wlb: %s: cannot be written: slurmstepd %d is not ended if it does not end after step "
		            "%u.%u: %s",
		            args->state_dir, (int)getpid(), job_id, step_id, strerror(errno));
		return;
	}
	wlb_stuck_stepd_note(job_id, step_id, note);
	close(note);
}

int wlb_remote_init(spank_t sp, struct wlb_spank *plugin)
{
	plugin->stepd = getpid();
	restore_options(sp, &plugin->options);
	if (!wlb_spank_options_active(&plugin->options))
		return 0;
	wlb_delivery_note(sp, &plugin->args);
	note_stepd(sp, &plugin->args);
	wlb_stale_pmix_clear(sp);
	return 0;
}

/* Reads the layout of the attempt that this step may be; *tasks receives the number of tasks on all nodes, *entries the
 * environment. */
static bool find_layout(spank_t sp, struct wlb_layout *layout, uint32_t *tasks, char ***entries)
{
	return spank_get_item(sp, S_JOB_TOTAL_TASK_COUNT, tasks) == ESPANK_SUCCESS &&
	       spank_get_item(sp, S_JOB_ENV, entries) == ESPANK_SUCCESS && *entries != NULL &&
	       wlb_step_layout(*entries, (int)*tasks, layout);
}

/* Whether `wlb run` started this step, and not a rank of the attempt. */
static bool is_attempt_step(spank_t sp, uint32_t step_id)
{
	struct wlb_layout layout;
	uint32_t tasks;
	char rank[16], **entries;
	wlb_environment_get(sp, "WLB_RANK_TP", rank, sizeof(rank));
	return step_id <= SLURM_MAX_NORMAL_STEP_ID && rank[0] == '\0' && find_layout(sp, &layout, &tasks, &entries);
}

static int start_agent(spank_t sp, struct wlb_spank *plugin, struct wlb_spank_step *step, struct wlb_error *error)
{
	char page[1024];
	uint32_t nodes = 0, tasks = 0;
	if (step->node[0] == '\0' || spank_get_item(sp, S_JOB_NNODES, &nodes) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_LOCAL_TASK_COUNT, &tasks) != ESPANK_SUCCESS)
		return wlb_fail(error, "Slurm gives neither the node's name nor its tasks");
	step->nodes = (int)nodes;
	step->tasks = (int)tasks;
	if (wlb_spank_agent_start(&plugin->agent, sp, &plugin->args, step, page, sizeof(page), error) != 0)
		return -1;
	wlb_environment_set(sp, "NODE_PAGE", page);
	return 0;
}

/* slurmd sets it in its own environment; in the job's it is the node of the script. If it is not set, slurmd knows its
 * node by the host's short name. */
static void find_node_name(char *node, size_t size)
{
	const char *name = getenv("SLURMD_NODENAME");
	if (name != NULL)
		snprintf(node, size, "%s", name);
	else if (gethostname(node, size - 1) == 0)
		node[strcspn(node, ".")] = '\0';
}

/* Starts the agent of the step on this node. A page that is named in the environment already is another step's. */
static void start_reporting(spank_t sp, struct wlb_spank *plugin, const char *run_id, uint32_t step_id, bool is_own)
{
	static const char *const names[] = {"WLB_COORDINATOR", "WLB_MUNGE_SOCKET", "WLB_COORDINATOR_USER",
	                                    "WLB_CONF",        "SLURM_CONF",       "WLB_HOOK_FILE",
	                                    "WLB_HOOK_NODE",   "WLB_HOOK_COPY",    NULL};
	struct wlb_error error;
	char attempt_id[64], node[256] = "";
	struct wlb_spank_step step = {
		.run_id = run_id, .attempt_id = attempt_id, .node = node, .names = names, .is_own = is_own};
	spank_unsetenv(sp, "WLB_NODE_PAGE");
	spank_unsetenv(sp, "SLURM_WLB_NODE_PAGE");
	wlb_environment_get(sp, "WLB_ATTEMPT_ID", attempt_id, sizeof(attempt_id));
	if (plugin->args.agent[0] == '\0' || attempt_id[0] == '\0' || (!is_own && !is_attempt_step(sp, step_id)))
		return;
	find_node_name(node, sizeof(node));
	/* With SlurmdParameters=contain_spank, since 24.05, Slurm calls this in a process that shares memory with
	 * slurmstepd and not its descriptors: the agent's would be that of something else in the calls that follow. */
	if (getpid() != plugin->stepd) {
		slurm_info("wlb: no agent on %s, since SlurmdParameters has contain_spank: ranks report themselves",
		           node);
		return;
	}
	if (start_agent(sp, plugin, &step, &error) != 0)
		slurm_error("wlb: no agent on %s: %s; the step runs all the same, and its ranks report themselves",
		            node, error.message);
}

int wlb_remote_user_init(spank_t sp, struct wlb_spank *plugin)
{
	struct wlb_spank_options *options = &plugin->options;
	struct wlb_announcement announcement = {.options = options};
	uint32_t step_id = 0, node = 0;
	char run_id[64];
	restore_options(sp, options);
	if (!wlb_spank_options_active(options))
		return 0;
	if (spank_get_item(sp, S_JOB_ID, &announcement.job_id) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_STEPID, &step_id) != ESPANK_SUCCESS) {
		slurm_error("wlb: Slurm does not give the job's id: this step runs without WLB");
		return 0;
	}
	find_run_id(sp, announcement.job_id, run_id, sizeof(run_id));
	wlb_environment_restore(sp);
	wlb_environment_set(sp, "RUN_ID", run_id);
	resolve_model(sp, options->text[WLB_JOB_MODEL]);
	set_policy(sp, options);
	set_coordinator(sp, &plugin->args);
	bool is_own = step_id <= SLURM_MAX_NORMAL_STEP_ID && wlb_own_step_take(sp);
	bool is_first = is_own && spank_get_item(sp, S_JOB_NODEID, &node) == ESPANK_SUCCESS && node == 0;
	if ((step_id == SLURM_BATCH_SCRIPT || is_first) && plugin->args.announce) {
		spank_get_item(sp, S_SLURM_RESTART_COUNT, &announcement.restart_count);
		announcement.run_id = run_id;
		announce(sp, plugin, &announcement);
	}
	start_reporting(sp, plugin, run_id, step_id, is_own);
	return 0;
}

/* Finds the rank's position in the layout; -1 with the reason if the nodes of the tasks cannot serve the layout. */
static int64_t find_place(const struct wlb_layout *layout, char *const *entries, int tasks, int node, int local_rank,
                          struct wlb_error *error)
{
	static const char variable[] = "SLURM_STEP_TASKS_PER_NODE";
	int *tasks_on;
	int count = wlb_step_nodes(entries, variable, tasks, &tasks_on, error);
	if (count < 0)
		return -1;
	int *order = wlb_step_order(entries, count);
	const struct wlb_nodes nodes = {.count = count, .ranks_on = tasks_on, .order = order};
	int64_t place = wlb_nodes_place(&nodes, node, local_rank);
	if (place < 0)
		wlb_fail(error, "task %d of node %d is none of those in %s", local_rank + 1, node + 1, variable);
	else if (wlb_layout_check(layout, &nodes, NULL, error) != 0)
		place = -1;
	free(order);
	free(tasks_on);
	return place;
}

/* Blocks the signals that ask wlb-worker to save (worker/train/stop_signals.h) in a task that is wlb-worker, which
 * waits for them once it is loaded: a signal that comes before stays pending, and would otherwise end it. Any other
 * program gets the signals as Slurm leaves them, since a blocked signal could not ask it to stop. */
static void hold_save_signals(spank_t sp)
{
	sigset_t save;
	if (!wlb_program_is_worker(sp))
		return;
	sigemptyset(&save);
	sigaddset(&save, SIGUSR1);
	sigaddset(&save, SIGUSR2);
	sigprocmask(SIG_BLOCK, &save, NULL);
}

/* Returns the tasks of the attempt whose step this is; -1: it is none of `wlb run`. */
static long find_world_size(spank_t sp)
{
	char tasks[16], rank[16];
	wlb_environment_get(sp, "WLB_WORLD_SIZE", tasks, sizeof(tasks));
	/* A step that a rank starts has its environment. */
	wlb_environment_get(sp, "WLB_RANK", rank, sizeof(rank));
	return tasks[0] != '\0' && rank[0] == '\0' ? strtol(tasks, NULL, 10) : -1;
}

static void set_variables(spank_t sp, const struct wlb_task_facts *facts)
{
	struct wlb_task_variable variables[WLB_TASK_VARIABLES_MAX];
	int count = wlb_task_variables(facts, variables);
	for (int i = 0; i < count; i++)
		spank_setenv(sp, variables[i].name, variables[i].value, !variables[i].is_kept);
	wlb_environment_set_number(sp, "RANK", facts->rank);
}

/* Reads what Slurm knows of the task; false where it is none of an attempt. */
static bool find_task(spank_t sp, struct wlb_task_facts *facts)
{
	uint32_t rank = 0, tasks = 0, local_tasks = 0, nodes = 0, node = 0;
	if (spank_get_item(sp, S_JOB_TOTAL_TASK_COUNT, &tasks) != ESPANK_SUCCESS ||
	    (long)tasks != find_world_size(sp) || spank_get_item(sp, S_TASK_GLOBAL_ID, &rank) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_TASK_ID, &facts->local_rank) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_LOCAL_TASK_COUNT, &local_tasks) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_NNODES, &nodes) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_JOB_NODEID, &node) != ESPANK_SUCCESS)
		return false;
	facts->node = (int)node;
	facts->rank = (int)rank;
	facts->world_size = (int)tasks;
	facts->local_world_size = (int)local_tasks;
	facts->nodes = (int)nodes;
	return true;
}

/* Puts the folder of Python's hook before what the user has in PYTHONPATH, in the first task of the node that is to
 * have it. What the hook notes on another node than that of `wlb run` is copied by the node's agent. */
static void set_hook(spank_t sp, const struct wlb_task_facts *facts)
{
	char folder[PATH_MAX], node[256], here[256] = "", old[32768], path[sizeof(folder) + sizeof(old) + 1];
	char copy[PATH_MAX], page[PATH_MAX];
	wlb_environment_get(sp, "WLB_HOOK_FOLDER", folder, sizeof(folder));
	wlb_environment_get(sp, "WLB_HOOK_NODE", node, sizeof(node));
	find_node_name(here, sizeof(here));
	wlb_environment_get(sp, "WLB_HOOK_COPY", copy, sizeof(copy));
	wlb_environment_get(sp, "WLB_NODE_PAGE", page, sizeof(page)); /* of the agent; "": none runs */
	if (folder[0] == '\0' || facts->local_rank != 0 || strcmp(node, here) != 0 ||
	    (copy[0] != '\0' && page[0] == '\0'))
		return;
	spank_err_t found = spank_getenv(sp, "PYTHONPATH", old, sizeof(old));
	if (found == ESPANK_ENV_NOEXIST)
		old[0] = '\0';
	else if (found != ESPANK_SUCCESS)
		return; /* it is longer than that */
	snprintf(path, sizeof(path), "%s%s%s", folder, old[0] != '\0' ? ":" : "", old);
	spank_setenv(sp, "PYTHONPATH", path, 1);
}

/* Tells a task of an attempt where it finds the other ranks. */
static void set_rank(spank_t sp)
{
	char address[256], port[16], id[256], files[PATH_MAX], metrics[PATH_MAX], backend[64];
	struct wlb_task_facts facts = {
		.address = address, .port = port, .rendezvous = id, .error_files = files, .metrics_files = metrics};
	if (!find_task(sp, &facts))
		return;
	wlb_environment_get(sp, "WLB_MASTER_ADDR", address, sizeof(address));
	wlb_environment_get(sp, "WLB_MASTER_PORT", port, sizeof(port));
	wlb_environment_get(sp, "WLB_RENDEZVOUS", id, sizeof(id));
	wlb_environment_get(sp, "WLB_ERROR_FILES", files, sizeof(files));
	wlb_environment_get(sp, "WLB_METRICS_FILES", metrics, sizeof(metrics));
	wlb_environment_get(sp, "PET_RDZV_BACKEND", backend, sizeof(backend));
	facts.has_own_server = backend[0] != '\0' && strcmp(backend, "static") != 0 && strcmp(backend, "c10d") != 0;
	set_variables(sp, &facts);
	set_hook(sp, &facts);
}

int wlb_remote_task_init(spank_t sp, const struct wlb_spank *plugin)
{
	struct wlb_layout layout;
	struct wlb_error error;
	uint32_t tasks = 0, node = 0;
	int local_rank = 0;
	char **entries;
	hold_save_signals(sp);
	if (!wlb_spank_options_active(&plugin->options))
		return 0;
	set_rank(sp);
	if (!find_layout(sp, &layout, &tasks, &entries) || spank_get_item(sp, S_JOB_NODEID, &node) != ESPANK_SUCCESS ||
	    spank_get_item(sp, S_TASK_ID, &local_rank) != ESPANK_SUCCESS)
		return 0;
	int64_t place = find_place(&layout, entries, (int)tasks, (int)node, local_rank, &error);
	if (place < 0) {
		if (node == 0 && local_rank == 0)
			slurm_error("wlb: no task has coordinates (WLB_RANK_TP ...): %s", error.message);
		return 0;
	}
	struct wlb_coordinates at = wlb_layout_coordinates(&layout, (int)place);
	wlb_environment_set_number(sp, "RANK_TP", at.tp);
	wlb_environment_set_number(sp, "RANK_CP", at.cp);
	wlb_environment_set_number(sp, "RANK_PP", at.pp);
	wlb_environment_set_number(sp, "RANK_DP", at.dp);
	return 0;
}

int wlb_remote_task_forked(spank_t sp, const struct wlb_spank *plugin)
{
	uint32_t rank = 0;
	pid_t pid = 0;
	if (spank_get_item(sp, S_TASK_GLOBAL_ID, &rank) == ESPANK_SUCCESS &&
	    spank_get_item(sp, S_TASK_PID, &pid) == ESPANK_SUCCESS)
		wlb_spank_agent_task(&plugin->agent, (int)rank, pid);
	return 0;
}

int wlb_remote_task_exited(spank_t sp, struct wlb_spank *plugin)
{
	uint32_t rank = 0;
	int status = 0;
	if (spank_get_item(sp, S_TASK_GLOBAL_ID, &rank) == ESPANK_SUCCESS &&
	    spank_get_item(sp, S_TASK_EXIT_STATUS, &status) == ESPANK_SUCCESS)
		wlb_spank_agent_exit(&plugin->agent, (int)rank, status);
	return 0;
}

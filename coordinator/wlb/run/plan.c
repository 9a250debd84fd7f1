#include "coordinator/wlb/run/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/number.h"
#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlb/run/gpu_type.h"
#include "coordinator/wlb/run/plan_before.h"
#include "coordinator/wlb/run/print.h"
#include "planner/plan_record.h"
#include "worker/launch/auto_request.h"

/* The options of the trainer's command. */
struct command {
	struct wlb_train_options options; /* of wlb-worker */
	bool is_worker;
	struct wlb_auto_request request;
};

/* Returns the index of the word `train` after `wlb-worker`, or -1. */
static int find_train_word(char *const *words)
{
	for (int i = 0; words[i] != NULL && words[i + 1] != NULL; i++) {
		const char *slash = strrchr(words[i], '/');
		if (strcmp(slash != NULL ? slash + 1 : words[i], "wlb-worker") == 0 &&
		    strcmp(words[i + 1], "train") == 0)
			return i + 1;
	}
	return -1;
}

/* Returns the value of "--name VALUE" or "--name=VALUE"; NULL where the command has no such option. */
static const char *word_value(char *const *words, const char *name)
{
	size_t length = strlen(name);
	for (int i = 0; words[i] != NULL; i++)
		if (strncmp(words[i], name, length) == 0) {
			if (words[i][length] == '=')
				return words[i] + length + 1;
			if (words[i][length] == '\0')
				return words[i + 1];
		}
	return NULL;
}

static int number_of(char *const *words, const char *name, int64_t otherwise, int64_t most, int64_t *number,
                     struct wlb_error *error)
{
	const char *text = word_value(words, name);
	*number = otherwise;
	return text != NULL ? wlb_number_parse(name, text, 1, most, number, error) : 0;
}

/* Reads the command of another trainer, with --wlb-model. Returns 1 where model, length or batch is not known: *missing
 * is the option to add. */
static int read_foreign(const struct wlb_run *run, const char *gpu_type, struct command *command, const char **missing,
                        struct wlb_error *error)
{
	char *const *words = run->options.command;
	const json_t *policy = run->job.policy;
	int64_t seq_length = json_integer_value(json_object_get(policy, "seq_length")), batch;
	struct wlb_auto_request *request = &command->request;
	if (number_of(words, "--seq-length", seq_length, 1 << 24, &seq_length, error) < 0 ||
	    number_of(words, "--global-batch-size", 0, 1 << 20, &batch, error) < 0)
		return -1;
	*request = (struct wlb_auto_request){
		.model = json_string_value(json_object_get(policy, "model")),
		.lengths = word_value(words, "--data-path"),
		.gpu_type = gpu_type,
		.seq_length = seq_length,
		.global_batch = (int32_t)batch,
		.max_length_ratio = 1.0,
		.sharding = WLB_SHARDING_SEQUENCE,
		.fixed = {.recompute = -1},
	};
	*missing = request->model == NULL ? "--wlb-model=FILE (a config.json) to sbatch"
	           : seq_length < 1       ? "--wlb-seq-length=N to sbatch"
	           : batch < 1            ? "--global-batch-size N to the command"
	                                  : NULL;
	return *missing != NULL;
}

/* Returns 1 where model, length or batch is not known; *missing is then the option to add, or NULL where the options of
 * wlb-worker are wrong, which wlb-worker will report itself. */
static int read_command(const struct wlb_run *run, const char *gpu_type, struct command *command, const char **missing,
                        struct wlb_error *error)
{
	int at = find_train_word(run->options.command), count = 0;
	*missing = NULL;
	command->is_worker = at >= 0;
	if (at < 0)
		return read_foreign(run, gpu_type, command, missing, error);
	while (run->options.command[at + count] != NULL)
		count++;
	if (wlb_train_options_parse(count, run->options.command + at, &command->options, NULL) != WLB_OPTIONS_READ)
		return 1;
	wlb_train_auto_request(&command->options, gpu_type, &command->request);
	return 0;
}

/* Reads the trainer's own --layout where it was given, else the job's. */
static int read_policy(const struct wlb_run *run, const struct command *command, struct wlb_policy *policy,
                       struct wlb_error *error)
{
	const char *text = command->is_worker ? command->options.layout : NULL;
	if (text == NULL)
		text = json_string_value(json_object_get(run->job.policy, "layout"));
	return wlb_policy_parse(text, policy, error);
}

/* The files are those of this node: a file that only the host of the submission has is named before a step starts. */
static int check_model(const char *path, const struct wlb_run *run, struct wlb_error *error)
{
	if (access(path, R_OK) == 0)
		return 0;
	return wlb_fail(error,
	                "model %.300s: it cannot be read on node %s: %s; put it on a file system that all nodes share",
	                path, run->job.this_node, strerror(errno));
}

/* Fixes the layout that the user named; settings that he did not name have the trainer's defaults. */
static void fix_layout(const struct wlb_layout *layout, struct wlb_search_fixed *fixed)
{
	fixed->tp = layout->tp;
	fixed->cp = layout->cp;
	fixed->pp = layout->pp;
	fixed->dp = layout->dp;
	fixed->interleave = fixed->interleave > 0 ? fixed->interleave : 1;
	fixed->micro_batch_windows = fixed->micro_batch_windows > 0 ? fixed->micro_batch_windows : 1;
	fixed->recompute = fixed->recompute >= 0 ? fixed->recompute : WLB_RECOMPUTE_NONE;
}

/* Returns how many tasks each node has so that `nodes` nodes at most, each with the same number and none with more than
 * `most`, run all ranks, tp of them never on two nodes; 0 where there is no such number. */
static int tasks_of_node(const struct wlb_layout *layout, int nodes, int most)
{
	int ranks = wlb_layout_ranks(layout);
	for (int tasks = most; tasks >= 1; tasks--)
		if (ranks % tasks == 0 && tasks % layout->tp == 0 && ranks / tasks <= nodes)
			return tasks;
	return 0;
}

/* Takes the nodes and tasks out of the attempt that the layout has no rank for; the record names the nodes. */
static int leave_idle(const struct wlb_layout *layout, struct wlb_attempt *attempt, json_t *record,
                      struct wlb_error *error)
{
	int ranks = wlb_layout_ranks(layout);
	int tasks = tasks_of_node(layout, attempt->node_count, attempt->tasks_per_node);
	if (tasks == 0)
		return wlb_fail(error,
		                "the best layout has %d ranks, which %d nodes of %d tasks cannot run with the same "
		                "number on each: use another --tasks-per-node, or name a layout",
		                ranks, attempt->node_count, attempt->tasks_per_node);
	int kept = ranks / tasks, idle = attempt->node_count - kept;
	char *text = idle > 0 ? wlb_hostlist_fold(attempt->nodes + kept, idle, NULL) : NULL;
	if (text != NULL) {
		json_object_set_new(record, "idle", json_string(text));
		wlb_run_print("no layout uses %s: %s idle", text, idle == 1 ? "it is" : "they are");
	}
	free(text);
	for (int i = kept; i < attempt->node_count; i++) {
		free(attempt->nodes[i]);
		attempt->nodes[i] = NULL;
	}
	attempt->node_count = kept;
	attempt->tasks_per_node = tasks;
	return 0;
}

static void set_layout(const struct wlb_auto *found, struct wlb_attempt *attempt)
{
	static const char *const names[] = {"none", "selective", "full"};
	const struct wlb_plan *best = &found->result->ranked[0].plan;
	attempt->layout = best->layout;
	attempt->has_layout = true;
	attempt->settings = (struct wlb_run_settings){
		.micro_batch_size = found->micro_batch_windows,
		.interleave = best->interleave,
		.recompute = names[best->recompute],
		.recompute_layers = best->recompute_layers,
	};
}

/* Searches with every rank in use, and, where no plan is found so, with idle ones. */
static int search(struct wlb_auto_request *request, struct wlb_auto *found, struct wlb_error *error)
{
	struct wlb_error first;
	request->every_rank = 1;
	if (wlb_auto_find(request, found, &first) == 0)
		return 0;
	wlb_auto_free(found);
	request->every_rank = 0;
	return wlb_auto_find(request, found, error);
}

/* The plan as a record, with the calibration of the run where it was planned with that. */
static json_t *record_of(const struct wlb_run *run, const struct wlb_auto_request *request,
                         const struct wlb_auto *found)
{
	json_t *record = wlb_plan_record(request, found);
	if (record != NULL && run->calibration != NULL && request->machine == NULL)
		json_object_set(record, "calibration", run->calibration);
	return record;
}

static int plan_auto(const struct wlb_run *run, struct wlb_auto_request *request, struct wlb_attempt *attempt,
                     struct wlb_error *error)
{
	struct wlb_auto found = {0};
	int rc = search(request, &found, error);
	json_t *record = rc == 0 ? record_of(run, request, &found) : NULL;
	if (record != NULL)
		wlb_run_plan_before(&run->layout_before, request, record);
	if (rc == 0)
		rc = leave_idle(&found.result->ranked[0].plan.layout, attempt, record, error);
	if (rc == 0) {
		set_layout(&found, attempt);
		attempt->plan = json_incref(record);
	}
	json_decref(record);
	wlb_auto_free(&found);
	return rc < 0 ? wlb_fail_in(error, "layout auto") : 0;
}

/* Adds the prediction only: a layout that the user named runs with any prediction. */
static void plan_fixed(const struct wlb_run *run, struct wlb_auto_request *request, struct wlb_attempt *attempt)
{
	struct wlb_auto found = {0};
	struct wlb_error error;
	fix_layout(&attempt->layout, &request->fixed);
	request->every_rank = 1;
	if (wlb_auto_find(request, &found, &error) == 0)
		attempt->plan = record_of(run, request, &found);
	else
		wlb_run_print("nothing is predicted for the layout that was asked for: %s", error.message);
	wlb_auto_free(&found);
}

int wlb_run_plan(const struct wlb_run *run, struct wlb_attempt *attempt, struct wlb_error *error)
{
	char type[128];
	const char *missing;
	struct wlb_policy policy;
	struct command command = {0};
	int rc = read_command(run, wlb_run_gpu_type(attempt, type, sizeof(type)), &command, &missing, error);
	if (rc < 0 || !attempt->has_layout || read_policy(run, &command, &policy, error) < 0)
		return rc < 0 || attempt->has_layout ? -1 : 0;
	if (rc > 0) {
		if (missing != NULL && policy.kind == WLB_POLICY_AUTO)
			wlb_run_print("the model is not known, so the layout is data parallel; add %s for a better one",
			              missing);
		return 0;
	}
	command.request.nodes = (struct wlb_nodes){
		.count = attempt->node_count, .ranks_per_node = attempt->tasks_per_node, .names = attempt->nodes};
	if (policy.kind == WLB_POLICY_FIXED) {
		plan_fixed(run, &command.request, attempt);
		return 0;
	}
	if (check_model(command.request.model, run, error) < 0)
		return -1;
	return plan_auto(run, &command.request, attempt, error);
}

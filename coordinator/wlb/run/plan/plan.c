#include "coordinator/wlb/run/plan/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coordinator/wlb/run/command/command_words.h"
#include "coordinator/wlb/run/plan/foreign_command.h"
#include "coordinator/wlb/run/plan/gpu_types.h"
#include "coordinator/wlb/run/plan/idle_ranks.h"
#include "coordinator/wlb/run/plan/machine.h"
#include "coordinator/wlb/run/plan/placement.h"
#include "coordinator/wlb/run/plan/told_layout.h"
#include "coordinator/wlb/run/state/print.h"
#include "planner/automatic.h"
#include "planner/plan_record.h"
#include "worker/launch/auto_request.h"

/* The options of the trainer's command. */
struct command {
	struct wlb_train_options options; /* of wlb-worker */
	bool is_worker;
	struct wlb_blend blend; /* of another trainer */
	struct wlb_auto_request request;
	bool is_named; /* the words name a part of the layout of another trainer */
};

/* Returns 1 where model, length or batch is not known; *missing is then the option to add, or NULL where the options of
 * wlb-worker are wrong, which wlb-worker will report itself. */
static int read_command(const struct wlb_run *run, const char *gpu_types, struct command *command, const char **missing,
                        struct wlb_error *error)
{
	int at = wlb_run_train_word(run->options.command), count = 0;
	*missing = NULL;
	command->is_worker = at >= 0;
	if (at < 0)
		return wlb_run_read_foreign(run, gpu_types, &command->blend, &command->request, missing, error);
	while (run->options.command[at + count] != NULL)
		count++;
	if (wlb_train_options_parse(count, run->options.command + at, &command->options, NULL) != WLB_OPTIONS_READ)
		return 1;
	wlb_train_auto_request(&command->options, gpu_types, &command->request);
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

/* What the planner calls selective is done by the fused kernels of other trainers: an option of theirs for it would do
 * it twice. */
static void set_layout(const struct wlb_auto *found, bool is_worker, struct wlb_attempt *attempt)
{
	const char *const names[] = {"none", is_worker ? "selective" : "none", "full"};
	const struct wlb_plan *best = &found->result->ranked[0].plan;
	attempt->layout = best->layout;
	attempt->has_layout = true;
	attempt->settings = (struct wlb_run_settings){
		.micro_batch_size = found->micro_batch_windows,
		.micro_batches = best->micro_batches,
		.interleave = best->interleave,
		.recompute = names[best->recompute],
		.recompute_layers = best->recompute_layers,
		.shared_head = best->shared_head,
		.dynamic = best->dynamic_cp > 0,
	};
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

static bool is_same_split(const struct wlb_layout *before, const json_t *layout)
{
	return json_integer_value(json_object_get(layout, "tp")) == before->tp &&
	       json_integer_value(json_object_get(layout, "cp")) == before->cp &&
	       json_integer_value(json_object_get(layout, "pp")) == before->pp;
}

/* Adds to the record of a plan what the layout of the attempt before would have cost on the remaining nodes: searches
 * with tp, cp and pp of `before` fixed and dp as large as `request` allows. Sets record.before to the best plan as in
 * wlb_plan_record, or, where there is none, to {"layout", "reason"} with dp as it was. Does nothing where the record
 * has the same tp, cp and pp, or `before` has tp 0. */
static void add_plan_before(const struct wlb_layout *before, const struct wlb_auto_request *request, json_t *record)
{
	struct wlb_auto_request as_before = *request;
	struct wlb_auto found = {0};
	struct wlb_error error;
	if (before->tp == 0 || is_same_split(before, json_object_get(record, "layout")))
		return;
	as_before.fixed.tp = before->tp;
	as_before.fixed.cp = before->cp;
	as_before.fixed.pp = before->pp;
	as_before.every_rank = 0;
	json_t *plan = wlb_auto_find(&as_before, &found, &error) == 0
	                       ? wlb_plan_record_candidate(&as_before, &found.result->ranked[0])
	                       : json_pack("{s:{s:i, s:i, s:i, s:i}, s:s}", "layout", "tp", before->tp, "cp",
	                                   before->cp, "pp", before->pp, "dp", before->dp, "reason", error.message);
	if (plan != NULL)
		json_object_set_new(record, "before", plan);
	wlb_auto_free(&found);
}

/* Ranks stay idle where the step is shorter so; those of a launcher, with their whole nodes. */
static int plan_auto(const struct wlb_run *run, struct wlb_auto_request *request, struct wlb_attempt *attempt,
                     struct wlb_error *error)
{
	struct wlb_auto found = {0};
	bool is_by_node = wlb_run_has_launcher(run);
	int rc = is_by_node ? wlb_run_find_on_nodes(attempt, request, &found, error)
	                    : wlb_auto_find(request, &found, error);
	json_t *record = rc == 0 ? record_of(run, request, &found) : NULL;
	if (record != NULL)
		add_plan_before(&run->layout_before, request, record);
	if (rc == 0 && is_by_node)
		wlb_run_leave_nodes(&request->nodes, attempt, record);
	else if (rc == 0)
		rc = wlb_run_leave_idle(&found.result->ranked[0].plan.layout, attempt, record, error);
	if (rc == 0) {
		set_layout(&found, request->is_worker, attempt);
		wlb_run_warn_of_loss(run, attempt, &request->nodes, &attempt->layout);
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

/* Whether another trainer's command names a part of the layout. It runs with that whatever is predicted for it: memory
 * and time are those of Megatron-LM, and the trainer may need less. */
static bool names_layout(const struct wlb_auto_request *request)
{
	const struct wlb_search_fixed *fixed = &request->fixed;
	return !request->is_worker &&
	       (fixed->tp > 0 || fixed->cp > 0 || fixed->pp > 0 || fixed->micro_batch_windows > 0);
}

/* A part that the command does not name is 1, as in Megatron-LM. Where the ranks of the nodes cannot be divided so, as
 * by a tp over several nodes, which another trainer may have, it is told nothing. */
static void take_named_layout(const struct wlb_auto_request *request, struct wlb_attempt *attempt)
{
	const struct wlb_search_fixed *fixed = &request->fixed;
	const struct wlb_policy policy = {.kind = WLB_POLICY_FIXED,
	                                  .fixed = {.tp = fixed->tp > 0 ? fixed->tp : 1,
	                                            .cp = fixed->cp > 0 ? fixed->cp : 1,
	                                            .pp = fixed->pp > 0 ? fixed->pp : 1}};
	struct wlb_layout layout;
	attempt->has_layout = wlb_layout_choose(&policy, &request->nodes, NULL, &layout, NULL) == 0;
	if (attempt->has_layout)
		attempt->layout = layout;
}

static int plan_trained(const struct wlb_run *run, struct command *command, struct wlb_attempt *attempt,
                        struct wlb_error *error)
{
	struct wlb_auto_request *request = &command->request;
	if (check_model(request->model, run, error) < 0)
		return -1;
	int rc = plan_auto(run, request, attempt, error);
	if (rc < 0 && run->held.tp > 0)
		wlb_run_fail_held(run, error);
	if (rc == 0 || !command->is_named)
		return rc;
	take_named_layout(request, attempt);
	/* A trainer that is told its layout has to be told one. */
	if (!attempt->has_layout && run->options.trainer != NULL)
		return -1;
	wlb_run_print("the layout is that of the command, for which nothing is predicted: %s", error->message);
	return 0;
}

static int plan_known(const struct wlb_run *run, bool is_fixed, struct command *command, struct wlb_attempt *attempt,
                      struct wlb_error *error)
{
	struct wlb_run_topology made = {0};
	int rc = wlb_run_topology_make(attempt, &made, error);
	command->request.topology = &made.topology;
	if (rc == 0 && is_fixed)
		plan_fixed(run, &command->request, attempt);
	else if (rc == 0)
		rc = plan_trained(run, command, attempt, error);
	wlb_run_topology_free(&made);
	return rc;
}

/* The indexes of another trainer may not exist: it may read datasets of another kind. */
static void check_indexes(struct wlb_auto_request *request)
{
	const char *prefix = request->blend != NULL ? wlb_blend_unreadable(request->blend) : NULL;
	if (prefix == NULL)
		return;
	wlb_run_print(
		"--data-path: %.300s.idx cannot be read, so the lengths of the documents are not known: planned as if "
		"each filled a window",
		prefix);
	request->blend = NULL;
}

/* A command that is told its layout by --for would be told that of the coordinator, which is data parallel. */
static int plan_nothing(const struct wlb_run *run, const struct wlb_policy *policy, const char *missing,
                        struct wlb_error *error)
{
	if (missing == NULL || policy->kind != WLB_POLICY_AUTO)
		return 0;
	if (run->options.trainer != NULL)
		return wlb_fail(error, "--for=%s: the layout cannot be planned: add %s", run->options.trainer, missing);
	wlb_run_print("the model is not known, so the layout is data parallel; add %s for a better one", missing);
	return 0;
}

static int plan(struct wlb_run *run, const char *gpu_types, struct wlb_attempt *attempt, struct command *command,
                struct wlb_error *error)
{
	const char *missing;
	struct wlb_policy policy;
	int ranks, rc = read_command(run, gpu_types, command, &missing, error);
	if (rc < 0 || !attempt->has_layout || read_policy(run, command, &policy, error) < 0)
		return rc < 0 || attempt->has_layout ? -1 : 0;
	if (rc > 0)
		return plan_nothing(run, &policy, missing, error);
	if (wlb_run_ranks_of_node(run, attempt, &ranks, error) < 0)
		return -1;
	check_indexes(&command->request);
	command->is_named = names_layout(&command->request);
	wlb_run_hold_layout(run, &command->request.fixed);
	command->request.nodes =
		(struct wlb_nodes){.count = attempt->node_count, .ranks_per_node = ranks, .names = attempt->nodes};
	return plan_known(run, policy.kind == WLB_POLICY_FIXED, command, attempt, error);
}

int wlb_run_plan(struct wlb_run *run, struct wlb_attempt *attempt, struct wlb_error *error)
{
	char types[WLB_RUN_GPU_TYPES_BYTES];
	struct command command = {0};
	wlb_run_gpu_types(run, attempt, types);
	wlb_run_find_machine(run, attempt, types);
	int rc = plan(run, types, attempt, &command, error);
	if (rc == 0)
		wlb_run_keep_layout(run, attempt);
	wlb_blend_free(&command.blend);
	return rc;
}

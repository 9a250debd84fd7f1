#include "coordinator/wlb/run/attempt/attempt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/clock.h"
#include "common/command.h"
#include "common/fault_kinds.h"
#include "common/json_text.h"
#include "coordinator/client/reporter.h"
#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlb/run/attempt/attempt_end.h"
#include "coordinator/wlb/run/attempt/launch.h"
#include "coordinator/wlb/run/attempt/output_files.h"
#include "coordinator/wlb/run/attempt/start_command.h"
#include "coordinator/wlb/run/attempt/watch.h"
#include "coordinator/wlb/run/check/suspects.h"
#include "coordinator/wlb/run/command/command_words.h"
#include "coordinator/wlb/run/command/input.h"
#include "coordinator/wlb/run/command/launcher.h"
#include "coordinator/wlb/run/follow/follower.h"
#include "coordinator/wlb/run/plan/placement.h"
#include "coordinator/wlb/run/plan/plan.h"
#include "coordinator/wlb/run/state/job.h"
#include "coordinator/wlb/run/state/print.h"
#include "coordinator/wlb/run/state/record.h"
#include "coordinator/wlb/run/stop/grow.h"
#include "coordinator/wlb/run/stop/parent.h"
#include "coordinator/wlb/run/stop/signals.h"
#include "coordinator/wlb/run/stop/stop_file.h"

/* How long to restart srun while Slurm creates no step for it, and the pauses between. */
enum { STEP_TRIES_MS = 60000, STEP_PAUSE_MS = 1000, STEP_PAUSE_MAX_MS = 8000 };

/* The same while slurmctld does not answer: an upgrade or a failover takes minutes, and no other attempt would do
 * better. */
enum { UNAVAILABLE_TRIES_MS = 30 * 60000 };

/* For the last steps that the trainer has said to be read. */
enum { FOLLOW_END_MS = 1000, FOLLOW_CANCELLED_MS = 200 };

int wlb_attempt_new_id(char id[37], struct wlb_error *error)
{
	unsigned char b[16];
	if (getrandom(b, sizeof(b), 0) != sizeof(b))
		return wlb_fail(error, "no random number for an attempt's id: %s", strerror(errno));
	b[6] = (b[6] & 0x0f) | 0x40;
	b[8] = (b[8] & 0x3f) | 0x80;
	snprintf(id, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2], b[3],
	         b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
	return 0;
}

void wlb_attempt_free(struct wlb_attempt *attempt)
{
	wlb_strings_free(attempt->nodes, attempt->node_count);
	attempt->nodes = NULL;
	attempt->node_count = 0;
	wlb_strings_free(attempt->unresponsive, attempt->unresponsive_count);
	attempt->unresponsive = NULL;
	attempt->unresponsive_count = 0;
	free(attempt->switches);
	wlb_launcher_free(attempt->command);
	attempt->command = NULL;
	free(attempt->checkpoint_path);
	attempt->checkpoint_path = NULL;
	attempt->switches = NULL;
	attempt->switch_count = 0;
	json_decref(attempt->gpu_types);
	attempt->gpu_types = NULL;
	json_decref(attempt->suspects);
	attempt->suspects = NULL;
	json_decref(attempt->plan);
	attempt->plan = NULL;
}

/* The model is not known here: the trainer checks heads and layers. */
int wlb_attempt_decide_alone(const struct wlb_run *run, struct wlb_attempt *attempt, struct wlb_error *error)
{
	const struct wlb_run_job *job = &run->job;
	struct wlb_policy policy;
	const char *text = json_string_value(json_object_get(job->policy, "layout"));
	if (wlb_policy_parse(text, &policy, error) != 0)
		return -1;
	const struct wlb_nodes nodes = {
		.count = job->node_count, .ranks_per_node = job->tasks_per_node, .names = job->nodes};
	attempt->tasks_per_node = job->tasks_per_node;
	attempt->is_decided_here = true;
	attempt->has_layout = policy.kind != WLB_POLICY_OFF;
	if (attempt->has_layout && wlb_layout_choose(&policy, &nodes, NULL, &attempt->layout, error) != 0)
		return -1;
	attempt->nodes = calloc((size_t)job->node_count + 1, sizeof(*attempt->nodes));
	for (int i = 0; attempt->nodes != NULL && i < job->node_count; i++) {
		attempt->nodes[i] = strdup(job->nodes[i]);
		attempt->node_count = i + 1;
	}
	return attempt->nodes != NULL ? 0 : wlb_fail(error, "out of memory for %d nodes", job->node_count);
}

static struct wlb_reporter *start_reporter(struct wlb_run *run, const struct wlb_attempt *attempt)
{
	struct wlb_error error;
	struct wlb_reporter_options options = {.run_id = run->id,
	                                       .attempt_id = attempt->id,
	                                       .source = "run",
	                                       .spool_dir = run->job.spool_dir,
	                                       .node = run->job.this_node,
	                                       .rank = -1};
	struct wlb_reporter *reporter =
		wlb_reporter_start(run->connection != NULL ? &run->config : NULL, &options, &error);
	if (reporter == NULL)
		wlb_run_print("this attempt's end will not be recorded: %s", error.message);
	return reporter;
}

static const char *end_state(const struct wlb_attempt *attempt)
{
	if (attempt->exit_code == 0 && !attempt->stopped)
		return "complete";
	return attempt->stopped || attempt->ended_by != WLB_ENDED_BY_ITSELF ? "ended" : "failed";
}

static void record_end(const struct wlb_run *run, struct wlb_reporter *reporter, const struct wlb_attempt *attempt)
{
	json_t *data = json_pack("{s:s, s:i, s:o}", "state", end_state(attempt), "exit_code", attempt->exit_code,
	                         "reason", wlb_json_text(attempt->end_reason));
	wlb_attempt_end_put(run, attempt, data);
	wlb_attempt_error_put(attempt, data);
	wlb_run_record(reporter, "attempt_end", data);
}

/* Records the nodes that Slurm took from the job (--no-kill) while the attempt ran on them: for a trainer other than
 * wlb-worker nothing else reports them. */
static void record_lost_nodes(struct wlb_run *run, struct wlb_reporter *reporter, struct wlb_attempt *attempt)
{
	wlb_run_job_refresh(&run->job);
	for (int i = 0; i < attempt->node_count; i++) {
		const char *node = attempt->nodes[i];
		if (wlb_run_job_has_node(&run->job, node))
			continue;
		wlb_text_format(attempt->end_reason, sizeof(attempt->end_reason), "node %s is lost", node);
		attempt->is_refused = false; /* the next one asks for other nodes */
		wlb_run_record(reporter, "fault",
		               json_pack("{s:s, s:o, s:s}", "kind", wlb_faults[WLB_FAULT_NODE_LOST].name, "node",
		                         wlb_json_text(node), "detail", "Slurm took the node from the job"));
	}
}

/* Names the layout of the plan, or of the coordinator where nothing was planned. Where planning failed there is no
 * layout to name. */
static void announce_attempt(const struct wlb_run *run, const struct wlb_attempt *attempt, bool is_planned)
{
	char layout[64] = "no layout";
	char *nodes = wlb_hostlist_fold(attempt->nodes, attempt->node_count, NULL);
	/* A first attempt on all nodes needs no reason. */
	bool reason = *attempt->reason && (attempt->number > 1 || attempt->node_count < run->job.node_count);
	if (attempt->has_layout && is_planned)
		wlb_layout_format(&attempt->layout, layout, sizeof(layout));
	wlb_run_print("attempt %d on %s, %s%s%s%s", attempt->number, nodes != NULL ? nodes : "?", layout,
	              reason ? " (" : "", reason ? attempt->reason : "", reason ? ")" : "");
	free(nodes);
}

/* Returns whether srun, which got no step, may be started again; a run that is cancelled meanwhile is no failure of
 * srun. Where it has consumed input it had a step, and a task has written what srun writes without one. */
static bool wait_for_step(struct wlb_run *run, struct wlb_attempt *attempt, int64_t until_ms, int pause_ms)
{
	if (wlb_clock_left_ms(until_ms) == 0 || wlb_run_input_check(&run->input, NULL) != 0)
		return false;
	if (wlb_run_pause(run, pause_ms))
		return true;
	if (run->cancelled) {
		attempt->ended_by = WLB_ENDED_BY_CANCEL;
		attempt->exit_code = 128 + SIGTERM;
		snprintf(attempt->end_reason, sizeof(attempt->end_reason),
		         "cancelled while it waited for a Slurm step");
	}
	return false;
}

/* Starts srun until it has a step. Slurm may refuse one for some time after slurmctld was down, or while it cleans up
 * the step before; the command is not the cause. */
static pid_t run_step(struct wlb_run *run, struct wlb_attempt *attempt, struct wlb_reporter *reporter,
                      struct wlb_error *error)
{
	int64_t until_ms = wlb_clock_ms() + STEP_TRIES_MS, unavailable_until_ms = wlb_clock_ms() + UNAVAILABLE_TRIES_MS;
	int pause_ms = STEP_PAUSE_MS;
	int srun_stderr;
	bool has_command = wlb_run_start_command(run, attempt, error) == 0;
	if (has_command)
		wlb_run_record_command(run, attempt, reporter);
	for (;;) {
		pid_t srun = has_command ? wlb_run_launch(run, attempt, &srun_stderr, error) : -1;
		if (srun <= 0) {
			attempt->exit_code = WLB_EXIT_FAILED;
			return srun;
		}
		wlb_run_watch(run, attempt, srun, srun_stderr, reporter);
		/* Once it answers again it has the step before to clean up. */
		if (attempt->is_slurmctld_unavailable && wlb_clock_left_ms(unavailable_until_ms) > 0)
			until_ms = wlb_clock_ms() + STEP_TRIES_MS;
		if (!attempt->no_step || !wait_for_step(run, attempt, until_ms, pause_ms))
			return srun;
		pause_ms = pause_ms < STEP_PAUSE_MAX_MS ? 2 * pause_ms : pause_ms;
	}
}

/* wlb-worker is asked by SIGUSR1. */
static void make_stop_file(const struct wlb_run *run, const struct wlb_attempt *attempt)
{
	struct wlb_error error;
	if (run->job.off || wlb_run_train_word(run->options.command) >= 0)
		return;
	if (wlb_run_stop_file_make(&run->job, attempt->id, &error) != 0)
		wlb_run_print("attempt %d: wlb.should_stop() is never true in it: %s", attempt->number, error.message);
}

static pid_t run_followed(struct wlb_run *run, struct wlb_attempt *attempt, struct wlb_reporter *reporter,
                          struct wlb_error *error)
{
	make_stop_file(run, attempt);
	struct wlb_run_follower *follower = wlb_run_follower_start(run, attempt, reporter);
	pid_t srun = run_step(run, attempt, reporter, error);
	wlb_run_follower_stop(follower, wlb_run_must_end(run) ? FOLLOW_CANCELLED_MS : FOLLOW_END_MS);
	wlb_run_stop_file_remove(&run->job, attempt->id);
	return srun;
}

int wlb_attempt_run(struct wlb_run *run, struct wlb_attempt *attempt, struct wlb_error *error)
{
	struct wlb_error reason;
	wlb_run_grow_begin(run, attempt);
	if (attempt->has_layout)
		wlb_run_place_nodes(attempt);
	int planned = wlb_run_plan(run, attempt, &reason);
	run->layout_before = attempt->layout;
	run->attempts = attempt->number;
	announce_attempt(run, attempt, planned == 0);
	struct wlb_reporter *reporter = start_reporter(run, attempt);
	wlb_run_grow_record(run, reporter);
	wlb_run_suspects_begin(run, attempt, reporter);
	pid_t srun = 1;
	if (planned == 0) {
		if (attempt->is_decided_here)
			wlb_run_record_attempt(run, reporter, attempt);
		wlb_run_record_placement(attempt);
		if (attempt->plan != NULL)
			wlb_run_record(reporter, "plan", json_incref(attempt->plan));
		srun = run_followed(run, attempt, reporter, error);
	} else {
		attempt->exit_code = WLB_EXIT_USAGE;
		wlb_text_format(attempt->end_reason, sizeof(attempt->end_reason), "%s", reason.message);
	}
	wlb_run_suspects_end(run, attempt);
	if (attempt->exit_code > 128 && !wlb_run_must_end(run))
		wlb_run_note_job_end(run, attempt);
	if (run->abandoned) {
		wlb_reporter_abandon(reporter);
		return 0;
	}
	if (attempt->exit_code != 0 && planned == 0 && !run->cancelled)
		record_lost_nodes(run, reporter, attempt);
	if (attempt->exit_code != 0 && attempt->end_reason[0] == '\0')
		snprintf(attempt->end_reason, sizeof(attempt->end_reason), "srun ended with exit code %d",
		         attempt->exit_code);
	run->end_until_ms = wlb_clock_ms() + WLB_ATTEMPT_END_MS;
	if (reporter != NULL) {
		record_end(run, reporter, attempt);
		run->is_unavailable = wlb_reporter_unavailable(reporter);
		wlb_reporter_stop(reporter, WLB_ATTEMPT_END_MS);
	}
	return srun > 0 ? 0 : -1;
}

/* POST /v1/runs/RUN/report: each node sends one each second, so nothing here waits for the database. */
#include <stdlib.h>

#include "common/clock.h"
#include "common/json_text.h"
#include "coordinator/wlbd/api/find_attempt.h"
#include "coordinator/wlbd/api/handlers.h"
#include "coordinator/wlbd/api/reports/activity_read.h"
#include "coordinator/wlbd/api/reports/call_read.h"
#include "coordinator/wlbd/api/reports/processes_read.h"
#include "coordinator/wlbd/api/reports/report_read.h"
#include "coordinator/wlbd/api/reports/step_read.h"
#include "coordinator/wlbd/api/step_id.h"
#include "coordinator/wlbd/detection/detection.h"
#include "coordinator/wlbd/http/reply.h"
#include "coordinator/wlbd/incident/attempt_end.h"
#include "coordinator/wlbd/incident/step_end.h"
#include "coordinator/wlbd/incident/symptoms.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/verdicts/stacks.h"
#include "coordinator/wlbd/wlbd.h"

static void apply_ranks(struct wlbd_reporter *reporter, const struct wlbd_report *report)
{
	size_t i;
	json_t *entry;
	json_array_foreach((json_t *)report->lost_ranks, i, entry)
		wlbd_symptom_rank_gone(reporter, (int)json_integer_value(json_object_get(entry, "rank")));
	json_array_foreach((json_t *)report->exits, i, entry)
	{
		int code = (int)json_integer_value(json_object_get(entry, "code"));
		wlbd_symptom_rank_exited(reporter, (int)json_integer_value(json_object_get(entry, "rank")), code);
		wlbd_step_end_note_own_exit(reporter->attempt, code);
	}
}

/* A report counts as a sign of life also where there is no memory for what its ranks do. */
static void keep_activities(struct wlbd_attempt *attempt, const struct wlbd_reporter *reporter,
                            const struct wlbd_report *report)
{
	struct wlbd_activity activity;
	struct wlbd_activity_group groups[WLBD_ACTIVITY_GROUPS_MAX];
	int64_t now_ms = wlb_clock_ms();
	for (size_t i = 0; i < json_array_size(report->activities); i++) {
		wlbd_activity_read(json_array_get(report->activities, i), &activity, groups, NULL);
		if (wlbd_activities_keep(&attempt->activities, &activity, groups, reporter->node, now_ms) == 0)
			continue;
		wlbd_log_limited(
			WLBD_LOG_WARNING, WLBD_LIMIT_ACTIVITIES,
			"run %s: no memory for the activities of its ranks: the runs of uid %u, or of all users, "
			"have as many as are kept",
			attempt->run, attempt->uid);
		return;
	}
}

static void keep_processes(struct wlbd_reporter *reporter, const struct wlbd_report *report)
{
	struct wlbd_node_processes processes;
	if (report->processes != NULL)
		wlbd_processes_read(report->processes, &processes);
	wlbd_reporter_set_processes(reporter, report->processes != NULL ? &processes : NULL);
}

static void take_steps(struct wlbd_attempt *attempt, const struct wlbd_report *report)
{
	struct wlbd_counters *counters = &attempt->wlbd->counters;
	struct wlbd_rank_step step;
	for (size_t i = 0; i < json_array_size(report->steps); i++) {
		wlbd_step_read(json_array_get(report->steps, i), &step, NULL);
		wlbd_detection_take_step(attempt->watch.detection, &step);
	}
	counters->rank_steps += json_array_size(report->steps);
	counters->rank_steps_lost += (uint64_t)report->lost_steps;
}

static void take_calls(struct wlbd_attempt *attempt, const struct wlbd_report *report)
{
	struct wlbd_rank_call call;
	for (size_t i = 0; i < json_array_size(report->calls); i++) {
		wlbd_call_read(json_array_get(report->calls, i), &call, NULL);
		wlbd_detection_take_call(attempt->watch.detection, &call);
	}
}

static void apply(struct wlbd_attempt *attempt, struct wlbd_reporter *reporter, const struct wlbd_report *report,
                  const struct wlbd_request *request)
{
	if (report->step > reporter->step)
		reporter->step = report->step;
	if (report->launcher) {
		wlbd_step_end_note_id(attempt, report->step_id);
		wlbd_symptom_slurm_ends(attempt, &report->slurm_end);
	}
	reporter->agent = report->agent;
	wlbd_symptom_alive(reporter, request->connection, request->began_ms);
	reporter->stepd_gone = reporter->stepd_gone || report->stepd_gone;
	/* Before its ranks, which ended because of it. */
	if (report->stepd_gone)
		wlbd_attempt_end_stepd_gone(attempt, reporter->node);
	if (!report->launcher) {
		wlbd_step_end_note_report(attempt);
		wlbd_step_end_note_own(attempt, (int)report->own_nodes);
		keep_activities(attempt, reporter, report);
		take_calls(attempt, report); /* before the steps that they were made in */
		take_steps(attempt, report);
		keep_processes(reporter, report);
		apply_ranks(reporter, report);
	}
	if (report->goodbye) {
		wlbd_symptom_goodbye(reporter);
		wlbd_step_end_check_own(attempt);
	}
}

/* The reply has a proof only where it is a receipt, so that the reporter does not repeat what it has reported, or asks
 * for something. */
static void reply_continue(struct wlbd_request *request, struct wlbd_reporter *reporter,
                           const struct wlbd_report *report)
{
	bool asks = wlbd_stacks_ask_reporter(reporter);
	json_t *reply = json_pack("{s:s}", "order", "continue");
	if (asks)
		json_object_update_new(
			reply, json_pack("{s:s, s:I}", "want", "stacks", "stacks_id", (json_int_t)reporter->stacks_id));
	request->is_plain = !asks && json_array_size(report->lost_ranks) == 0 && json_array_size(report->exits) == 0 &&
	                    !report->goodbye;
	wlbd_request_reply(request, 200, reply);
}

/* The launcher is told when its srun waits for lost nodes alone. */
static void reply_end(struct wlbd_request *request, const struct wlbd_attempt *attempt,
                      const struct wlbd_report *report)
{
	json_t *reply = json_pack("{s:s, s:o}", "order", "end", "reason", wlb_json_text(attempt->ending.reason));
	if (report->launcher && wlbd_attempt_survivors_ended(attempt))
		json_object_set_new(reply, "survivors_ended", json_true());
	wlbd_request_reply(request, 200, reply);
}

static int check(const struct wlbd_attempt *attempt, const struct wlbd_report *report, struct wlb_error *error)
{
	if (report->step_id != NULL && wlbd_step_id_check(attempt->run, report->step_id, error) != 0)
		return -1;
	return wlbd_report_belongs(report, &attempt->nodes, error);
}

static void handle(struct wlbd_request *request, struct wlbd_attempt *attempt)
{
	const struct wlbd_report *report = request->parsed;
	struct wlb_error error = {0};
	if (check(attempt, report, &error) != 0) {
		wlbd_request_fail(request, 403, "run %s, attempt %lld: %s", attempt->run, (long long)attempt->number,
		                  error.message);
		return;
	}
	struct wlbd_reporter *reporter = wlbd_attempt_reporter(attempt, report->node, (int)report->rank);
	if (reporter == NULL) {
		wlbd_request_fail(request, 503, "attempt %s has %d reporters, the most it can have, or memory is short",
		                  attempt->uuid, attempt->reporters.count);
		return;
	}
	apply(attempt, reporter, report, request);
	request->wlbd->counters.reports++;
	if (wlbd_attempt_is_ordered(&attempt->incident.life))
		reply_end(request, attempt, report);
	else
		reply_continue(request, reporter, report);
}

void wlbd_post_report(struct wlbd_request *request)
{
	struct wlb_error error = {0};
	struct wlbd_report *report = request->parsed = malloc(sizeof(*report));
	if (report == NULL)
		wlbd_request_fail_memory(request);
	else if (wlbd_report_read(request->body, report, &error) != 0)
		wlbd_request_fail(request, 400, "%s", error.message);
	else
		wlbd_find_live_attempt(request, report->attempt_id, handle);
}

#include "coordinator/wlbd/incident/faults.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/rank_end.h"
#include "coordinator/wlbd/database/outbox.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/rules/decision.h"
#include "coordinator/wlbd/wlbd.h"

struct fault {
	enum wlb_fault_kind kind;
	int rank;         /* -1: of none */
	const char *node; /* NULL: of none */
	int64_t step;     /* -1: not known */
	const char *detail;
	json_t *evidence; /* NULL: none; the reference is taken */
	double time_s;
};

static void record(struct wlbd *wlbd, uid_t uid, int64_t run_pk, int64_t attempt_pk, const struct fault *fault)
{
	struct wlbd_params params = {0};
	char *evidence = fault->evidence != NULL ? json_dumps(fault->evidence, JSON_COMPACT) : NULL;
	wlbd_params_add_integer(&params, attempt_pk);
	wlbd_params_add_text(&params, wlb_faults[fault->kind].name);
	wlbd_params_add_integer_if(&params, fault->rank >= 0, fault->rank);
	wlbd_params_add_text(&params, fault->node);
	wlbd_params_add_integer_if(&params, fault->step >= 0, fault->step);
	wlbd_params_add_text(&params, fault->detail);
	wlbd_params_add_text(&params, evidence);
	wlbd_params_add_seconds(&params, fault->time_s);
	wlbd_outbox_put(
		wlbd->outbox, uid, run_pk,
		"select wlb_fault_found($1, $2, $3::integer, $4, $5::bigint, $6, $7::jsonb, to_timestamp($8::float8))",
		&params);
	json_decref(fault->evidence);
	free(evidence);
}

/* ---- findings ---------------------------------------------------------------------------------------- */

void wlbd_fault_text(const struct wlbd_finding *finding, char *text, size_t size)
{
	const struct wlbd_symptom *s = finding->symptom;
	if (finding->what == WLBD_FOUND_NODE)
		snprintf(text, size, "node %s is lost", s->node);
	else if (finding->what == WLBD_FOUND_LAUNCHER)
		snprintf(text, size, "wlb run on %s was killed", s->node);
	else
		wlb_rank_end_text(text, size, s->rank, s->node, s->exit_code);
}

static const char *detail_of(const struct wlbd_finding *finding)
{
	if (finding->what == WLBD_FOUND_NODE)
		return finding->symptom->kind == WLBD_SILENT ? "its reports stopped and its slurmd does not answer"
		                                             : "its connection closed and its slurmd does not answer";
	if (finding->symptom->exit_code != 0)
		return "Slurm reported its exit";
	return finding->symptom->kind == WLBD_RANK_GONE
	               ? "its process is gone"
	               : "its connection closed and did not come back; its node is alive";
}

static json_t *evidence_of_loss(const struct wlbd_attempt *attempt, const struct wlbd_symptom *s)
{
	json_t *evidence = json_object();
	if (s->alive_ms != 0)
		json_object_set_new(evidence, "alive_at", json_real(wlb_clock_unix_at_s(s->alive_ms)));
	if (!attempt->nodes.allocation_known)
		json_object_set_new(evidence, "job_unknown", json_true());
	if (s->after_end)
		json_object_set_new(evidence, "after_end", json_true());
	/* After the job other jobs have its nodes. A node that was lost with the job was lost before Slurm said that
	 * the job is over. */
	if (attempt->job.over_ms != 0 && s->at_ms > attempt->job.over_ms)
		json_object_set_new(evidence, "job_over", json_true());
	return evidence;
}

/* What wlb_attempt_cause of the schema decides by; NULL: nothing. */
static json_t *evidence_of(const struct wlbd_attempt *attempt, const struct wlbd_finding *finding, bool is_cause)
{
	const struct wlbd_symptom *s = finding->symptom;
	if (finding->what == WLBD_FOUND_LAUNCHER)
		return json_pack("{s:f}", "during", wlb_clock_unix_at_s(s->at_ms));
	if (finding->what == WLBD_FOUND_NODE)
		return evidence_of_loss(attempt, s);
	return s->exit_code != 0 ? json_pack("{s:i, s:b}", "exit_code", s->exit_code, "first", is_cause) : NULL;
}

void wlbd_fault_record(struct wlbd_attempt *attempt, const struct wlbd_finding *finding, bool is_cause)
{
	static const enum wlb_fault_kind kinds[] = {[WLBD_FOUND_NODE] = WLB_FAULT_NODE_LOST,
	                                            [WLBD_FOUND_RANK] = WLB_FAULT_RANK_LOST,
	                                            [WLBD_FOUND_LAUNCHER] = WLB_FAULT_LAUNCHER_LOST};
	char text[512];
	const struct wlbd_symptom *s = finding->symptom;
	wlbd_fault_text(finding, text, sizeof(text));
	wlbd_log(WLBD_LOG_WARNING, "run %s, attempt %lld: %s: %s", attempt->run, (long long)attempt->number, text,
	         detail_of(finding));
	struct fault fault = {.kind = kinds[finding->what],
	                      .rank = finding->what == WLBD_FOUND_RANK ? s->rank : -1,
	                      .node = s->node,
	                      .step = s->step,
	                      .detail = detail_of(finding),
	                      .evidence = evidence_of(attempt, finding, is_cause),
	                      .time_s = wlb_clock_unix_at_s(s->at_ms)};
	record(attempt->wlbd, attempt->uid, attempt->run_pk, attempt->attempt_pk, &fault);
	attempt->wlbd->counters.faults[fault.kind]++;
}

/* ---- faults that need no judgement ------------------------------------------------------------------- */

void wlbd_fault_record_step_failed(struct wlbd_attempt *attempt, const char *node, const char *detail, bool is_broken,
                                   double time_s)
{
	struct fault fault = {.kind = WLB_FAULT_STEP_FAILED,
	                      .rank = -1,
	                      .node = node,
	                      .step = -1,
	                      .detail = detail,
	                      .evidence = is_broken ? json_pack("{s:b}", "step_broken", 1) : NULL,
	                      .time_s = time_s};
	record(attempt->wlbd, attempt->uid, attempt->run_pk, attempt->attempt_pk, &fault);
	attempt->wlbd->counters.faults[fault.kind]++;
}

void wlbd_fault_record_killed(struct wlbd *wlbd, uid_t uid, int64_t run_pk, int64_t attempt_pk,
                              enum wlb_fault_kind kind, const char *node, const char *detail, double time_s)
{
	struct fault fault = {.kind = kind,
	                      .rank = -1,
	                      .node = node[0] != '\0' ? node : NULL,
	                      .step = -1,
	                      .detail = detail,
	                      .evidence = time_s > 0 ? json_pack("{s:f}", "during", time_s) : NULL,
	                      .time_s = time_s > 0 ? time_s : wlb_clock_unix_s()};
	record(wlbd, uid, run_pk, attempt_pk, &fault);
	wlbd->counters.faults[kind]++;
}

void wlbd_fault_record_evicted(struct wlbd_attempt *attempt, const struct wlbd_eviction *eviction)
{
	struct fault fault = {.kind = eviction->kind,
	                      .rank = eviction->rank,
	                      .node = eviction->node,
	                      .step = eviction->step,
	                      .detail = eviction->evidence,
	                      .evidence = json_pack("{s:s}", "evicted", eviction->text),
	                      .time_s = wlb_clock_unix_s()};
	record(attempt->wlbd, attempt->uid, attempt->run_pk, attempt->attempt_pk, &fault);
}

/* ---- reason and end of the attempt ------------------------------------------------------------------- */

void wlbd_fault_record_reported_step(const struct wlbd_attempt *attempt)
{
	struct wlbd_params params = {0};
	const struct wlbd_reporter *reporter;
	int64_t step = 0;
	TAILQ_FOREACH(reporter, &attempt->reporters.list, link)
	step = reporter->step > step ? reporter->step : step;
	if (step == 0)
		return;
	wlbd_params_add_integer(&params, attempt->attempt_pk);
	wlbd_params_add_integer(&params, step);
	wlbd_outbox_put(attempt->wlbd->outbox, attempt->uid, attempt->run_pk, "select wlb_attempt_reported($1, $2)",
	                &params);
}

void wlbd_fault_record_reason(struct wlbd_attempt *attempt, const char *reason)
{
	struct wlbd_params params = {0};
	wlbd_params_add_integer(&params, attempt->attempt_pk);
	wlbd_params_add_text(&params, reason);
	wlbd_params_add_seconds(&params, wlb_clock_unix_s());
	wlbd_outbox_put(attempt->wlbd->outbox, attempt->uid, attempt->run_pk,
	                "select wlb_attempt_blame($1, $2, to_timestamp($3::float8))", &params);
}

void wlbd_fault_record_failed(struct wlbd_attempt *attempt, const char *reason)
{
	struct wlbd_params params = {0};
	wlbd_params_add_integer(&params, attempt->attempt_pk);
	wlbd_params_add_integer(&params, attempt->incident.life.exit_code);
	wlbd_params_add_text(&params, reason);
	wlbd_params_add_seconds(&params, wlb_clock_unix_s());
	wlbd_outbox_put(attempt->wlbd->outbox, attempt->uid, attempt->run_pk,
	                "select wlb_attempt_end($1, 'failed', $2::integer, $3, to_timestamp($4::float8))", &params);
}

void wlbd_fault_record_exited(struct wlbd_attempt *attempt, int exit_code, const char *step_id)
{
	struct wlbd_params params = {0};
	/* wlb_attempt_exited takes exit codes for failures; that one is in the launcher's record of the attempt's end.
	 */
	if (attempt->ending.is_exit_recorded || exit_code == WLBD_EXIT_SAVED)
		return;
	attempt->ending.is_exit_recorded = true;
	wlbd_params_add_integer(&params, attempt->attempt_pk);
	wlbd_params_add_integer(&params, exit_code);
	wlbd_params_add_text(&params, step_id);
	wlbd_params_add_seconds(&params, wlb_clock_unix_s());
	wlbd_outbox_put(attempt->wlbd->outbox, attempt->uid, attempt->run_pk,
	                "select wlb_attempt_exited($1, $2::integer, $3, to_timestamp($4::float8))", &params);
}

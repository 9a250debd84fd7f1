#include "coordinator/wlbd/incident/faults.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "coordinator/wlbd/database/outbox.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/rules/cause.h"
#include "coordinator/wlbd/rules/decision.h"
#include "coordinator/wlbd/wlbd.h"

/* Where a fault belongs, and what is known of it that says nothing of the cause. */
struct stored_fault {
	uid_t uid; /* the run's owner */
	int64_t run_pk;
	int64_t attempt_pk;
	int64_t step;        /* -1: not known */
	double time_s;       /* since 1970 */
	bool is_job_unknown; /* NODE_LOST: Slurm has not said, since this start, that the node is the job's */
	bool is_job_over;    /* NODE_LOST: Slurm had said before that the job has ended, or is unknown */
};

static struct stored_fault in_attempt(const struct wlbd_attempt *attempt, int64_t step, double time_s)
{
	return (struct stored_fault){.uid = attempt->uid,
	                             .run_pk = attempt->run_pk,
	                             .attempt_pk = attempt->attempt_pk,
	                             .step = step,
	                             .time_s = time_s};
}

static void set_if(json_t *object, const char *key, bool is_set, json_t *value)
{
	if (is_set)
		json_object_set_new(object, key, value);
	else
		json_decref(value);
}

/* Returns faults.proof, NULL: nothing. */
static char *proof_of(const struct wlbd_fault *fault, const struct stored_fault *stored)
{
	json_t *proof = json_object();
	bool is_node = fault->kind == WLB_FAULT_NODE_LOST, is_since_known = fault->since_s != 0;
	set_if(proof, "exit_code", fault->exit_code != 0, json_integer(fault->exit_code));
	set_if(proof, "first", fault->exit_code != 0, json_boolean(fault->is_first));
	set_if(proof, "alive_at", is_node && is_since_known, json_real(fault->since_s));
	set_if(proof, "job_unknown", stored->is_job_unknown, json_true());
	set_if(proof, "after_end", fault->is_after_end, json_true());
	set_if(proof, "job_over", stored->is_job_over, json_true());
	set_if(proof, "step_broken", fault->is_step_broken, json_true());
	set_if(proof, "during", !is_node && !fault->is_step_broken && is_since_known, json_real(fault->since_s));
	set_if(proof, "evicted", fault->eviction != NULL, json_true());
	char *text = json_object_size(proof) > 0 ? json_dumps(proof, JSON_COMPACT) : NULL;
	json_decref(proof);
	return text;
}

static void record(struct wlbd *wlbd, const struct wlbd_fault *fault, const struct stored_fault *stored)
{
	struct wlbd_params params = {0};
	json_t *judgement = wlbd_cause_judge(fault);
	char *judged = json_dumps(judgement, JSON_COMPACT), *proof = proof_of(fault, stored);
	wlbd_params_add_integer(&params, stored->attempt_pk);
	wlbd_params_add_text(&params, wlb_faults[fault->kind].name);
	wlbd_params_add_integer_if(&params, fault->rank >= 0, fault->rank);
	wlbd_params_add_text(&params, fault->node);
	wlbd_params_add_integer_if(&params, stored->step >= 0, stored->step);
	wlbd_params_add_text(&params, fault->detail);
	wlbd_params_add_text(&params, proof);
	wlbd_params_add_seconds(&params, stored->time_s);
	wlbd_params_add_text(&params, judged);
	wlbd_outbox_put(wlbd->outbox, stored->uid, stored->run_pk,
	                "select wlb_fault_found($1, $2, $3::integer, $4, $5::bigint, $6, $7::jsonb, "
	                "to_timestamp($8::float8), $9::jsonb)",
	                &params);
	if (wlb_faults[fault->kind].is_loss)
		wlbd->counters.faults[fault->kind]++;
	json_decref(judgement);
	free(judged);
	free(proof);
}

/* ---- findings ---------------------------------------------------------------------------------------- */

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

static struct wlbd_fault fault_of(const struct wlbd_finding *finding)
{
	static const enum wlb_fault_kind kinds[] = {[WLBD_FOUND_NODE] = WLB_FAULT_NODE_LOST,
	                                            [WLBD_FOUND_RANK] = WLB_FAULT_RANK_LOST,
	                                            [WLBD_FOUND_LAUNCHER] = WLB_FAULT_LAUNCHER_LOST};
	const struct wlbd_symptom *s = finding->symptom;
	struct wlbd_fault fault = {
		.kind = kinds[finding->what], .rank = -1, .node = s->node, .detail = detail_of(finding)};
	if (finding->what == WLBD_FOUND_RANK) {
		fault.rank = s->rank;
		fault.exit_code = s->exit_code;
	} else if (finding->what == WLBD_FOUND_LAUNCHER) {
		fault.since_s = wlb_clock_unix_at_s(s->at_ms);
	} else {
		fault.is_after_end = s->after_end;
		fault.since_s = s->alive_ms != 0 ? wlb_clock_unix_at_s(s->alive_ms) : 0;
	}
	return fault;
}

void wlbd_fault_text(const struct wlbd_finding *finding, char *text, size_t size)
{
	struct wlbd_fault fault = fault_of(finding);
	wlbd_cause_sentence(&fault, text, size);
}

void wlbd_fault_record(struct wlbd_attempt *attempt, const struct wlbd_finding *finding, bool is_cause)
{
	char text[512];
	const struct wlbd_symptom *s = finding->symptom;
	struct wlbd_fault fault = fault_of(finding);
	struct stored_fault stored = in_attempt(attempt, s->step, wlb_clock_unix_at_s(s->at_ms));
	wlbd_fault_text(finding, text, sizeof(text));
	wlbd_log(WLBD_LOG_WARNING, "run %s, attempt %lld: %s: %s", attempt->run, (long long)attempt->number, text,
	         fault.detail);
	fault.is_first = is_cause;
	if (finding->what == WLBD_FOUND_NODE) {
		stored.is_job_unknown = !attempt->nodes.allocation_known;
		/* After the job other jobs have its nodes. A node that was lost with the job was lost before Slurm said
		 * that the job is over. */
		stored.is_job_over = attempt->job.over_ms != 0 && s->at_ms > attempt->job.over_ms;
	}
	record(attempt->wlbd, &fault, &stored);
}

/* ---- faults that need no judgement ------------------------------------------------------------------- */

void wlbd_fault_record_step_failed(struct wlbd_attempt *attempt, const char *node, const char *detail, bool is_broken,
                                   double time_s)
{
	struct wlbd_fault fault = {.kind = WLB_FAULT_STEP_FAILED,
	                           .rank = -1,
	                           .node = node,
	                           .detail = detail,
	                           .is_step_broken = is_broken,
	                           .since_s = is_broken ? time_s : 0};
	struct stored_fault stored = in_attempt(attempt, -1, time_s);
	record(attempt->wlbd, &fault, &stored);
}

void wlbd_fault_record_killed(struct wlbd *wlbd, uid_t uid, int64_t run_pk, int64_t attempt_pk,
                              enum wlb_fault_kind kind, const char *node, const char *detail, double time_s)
{
	struct wlbd_fault fault = {.kind = kind,
	                           .rank = -1,
	                           .node = node[0] != '\0' ? node : NULL,
	                           .detail = detail,
	                           .since_s = time_s > 0 ? time_s : 0};
	struct stored_fault stored = {.uid = uid,
	                              .run_pk = run_pk,
	                              .attempt_pk = attempt_pk,
	                              .step = -1,
	                              .time_s = time_s > 0 ? time_s : wlb_clock_unix_s()};
	record(wlbd, &fault, &stored);
}

void wlbd_fault_record_evicted(struct wlbd_attempt *attempt, const struct wlbd_eviction *eviction)
{
	struct wlbd_fault fault = {.kind = eviction->kind,
	                           .rank = eviction->rank,
	                           .node = eviction->node,
	                           .detail = eviction->evidence,
	                           .eviction = eviction->text};
	struct stored_fault stored = in_attempt(attempt, eviction->step, wlb_clock_unix_s());
	record(attempt->wlbd, &fault, &stored);
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

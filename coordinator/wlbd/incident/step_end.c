#include "coordinator/wlbd/incident/step_end.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "coordinator/wlbd/database/outbox.h"
#include "coordinator/wlbd/incident/attempt_end.h"
#include "coordinator/wlbd/incident/faults.h"
#include "coordinator/wlbd/incident/symptoms.h"
#include "coordinator/wlbd/slurm/slurm_requests.h"
#include "coordinator/wlbd/wlbd.h"

enum {
	QUIET_MS = 20000, /* without a report of a node, until Slurm is asked */
	ASK_AGAIN_MAX_MS = 320000,
	QUESTIONS_MAX = 2,        /* at the same time, of all attempts: they use threads that other questions need */
	LAUNCHER_FRESH_MS = 5000, /* a launcher that has reported this long ago still waits for its srun */
};

/* Stored in the database too, so that wlbd can kill the step after a restart. */
void wlbd_step_end_note_id(struct wlbd_attempt *attempt, const char *id)
{
	struct wlbd_params params = {0};
	if (id == NULL || attempt->slurm_step.id[0] != '\0') /* an attempt has one step */
		return;
	snprintf(attempt->slurm_step.id, sizeof(attempt->slurm_step.id), "%s", id);
	wlbd_params_add_integer(&params, attempt->attempt_pk);
	wlbd_params_add_text(&params, id);
	wlbd_outbox_put(attempt->wlbd->outbox, attempt->uid, attempt->run_pk,
	                "update attempts set slurm_step = $2 where id = $1", &params);
}

void wlbd_step_end_note_report(struct wlbd_attempt *attempt)
{
	struct wlbd_params params = {0};
	if (attempt->slurm_step.has_reported)
		return;
	attempt->slurm_step.has_reported = true;
	wlbd_params_add_integer(&params, attempt->attempt_pk);
	wlbd_outbox_put(attempt->wlbd->outbox, attempt->uid, attempt->run_pk,
	                "update attempts set node_reported = true where id = $1", &params);
}

void wlbd_step_end_note_own(struct wlbd_attempt *attempt, int nodes)
{
	struct wlbd_params params = {0};
	if (nodes == 0 || attempt->slurm_step.own_nodes != 0)
		return;
	attempt->slurm_step.own_nodes = nodes;
	attempt->policy.goes_on = true;
	wlbd_params_add_integer(&params, attempt->attempt_pk);
	wlbd_outbox_put(attempt->wlbd->outbox, attempt->uid, attempt->run_pk, "select wlb_attempt_is_own($1)", &params);
}

void wlbd_step_end_note_own_exit(struct wlbd_attempt *attempt, int code)
{
	if (attempt->slurm_step.own_exit_code == 0)
		attempt->slurm_step.own_exit_code = code;
}

void wlbd_step_end_check_own(struct wlbd_attempt *attempt)
{
	const struct wlbd_slurm_step *step = &attempt->slurm_step;
	const struct wlbd_reporter *reporter;
	int ended = 0;
	TAILQ_FOREACH(reporter, &attempt->reporters.list, link)
	ended += reporter->agent && reporter->goodbye;
	if (step->own_nodes == 0 || ended < step->own_nodes || wlbd_attempt_has_ended(&attempt->incident.life))
		return;
	wlbd_fault_record_exited(attempt, step->own_exit_code, NULL);
	wlbd_symptom_step_ended(attempt, step->own_exit_code, NULL);
}

static bool is_launcher_waiting(const struct wlbd_attempt *attempt, int64_t now_ms)
{
	const struct wlbd_reporter *reporter;
	TAILQ_FOREACH(reporter, &attempt->reporters.list, link)
	if (reporter->rank == WLBD_LAUNCHER)
		return reporter->connection != NULL && !reporter->goodbye &&
		       now_ms - reporter->reported_ms < LAUNCHER_FRESH_MS;
	return false;
}

static int64_t last_node_report_ms(const struct wlbd_attempt *attempt)
{
	const struct wlbd_reporter *reporter;
	int64_t last_ms = 0;
	TAILQ_FOREACH(reporter, &attempt->reporters.list, link)
	if (reporter->rank != WLBD_LAUNCHER && reporter->reported_ms > last_ms)
		last_ms = reporter->reported_ms;
	return last_ms;
}

static void on_answer(void *context, int has_stepd)
{
	struct wlbd_attempt_ref *ref = context;
	struct wlbd_attempt *attempt = wlbd_attempt_ref_find(ref);
	ref->wlbd->step_questions--;
	free(ref);
	if (attempt != NULL) {
		struct wlbd_quiet *quiet = &attempt->slurm_step.quiet;
		quiet->is_asked = false;
		quiet->ask_ms = wlb_clock_ms() + quiet->pause_ms;
		quiet->pause_ms = quiet->pause_ms < ASK_AGAIN_MAX_MS ? 2 * quiet->pause_ms : quiet->pause_ms;
		if (has_stepd == 0 && !wlbd_attempt_is_ordered(&attempt->incident.life) &&
		    last_node_report_ms(attempt) <= quiet->since_ms && is_launcher_waiting(attempt, wlb_clock_ms()))
			wlbd_attempt_end_no_stepd(attempt);
	}
}

static void ask(struct wlbd_attempt *attempt)
{
	struct wlbd_attempt_ref *ref = malloc(sizeof(*ref));
	if (ref == NULL)
		return;
	*ref = wlbd_attempt_ref(attempt);
	attempt->slurm_step.quiet.is_asked = true;
	attempt->wlbd->step_questions++;
	wlbd_slurm_step_has_stepd(attempt->wlbd, attempt->job_id, attempt->slurm_step.id, on_answer, ref);
}

/* The launcher is on the node of its job's script: where that is silent, other rules apply. */
void wlbd_step_end_check(struct wlbd_attempt *attempt, int64_t now_ms)
{
	struct wlbd_quiet *quiet = &attempt->slurm_step.quiet;
	int64_t last_ms = last_node_report_ms(attempt);
	if (quiet->since_ms == 0 || last_ms > quiet->since_ms)
		*quiet = (struct wlbd_quiet){.since_ms = last_ms != 0 ? last_ms : now_ms,
		                             .ask_ms = (last_ms != 0 ? last_ms : now_ms) + QUIET_MS,
		                             .pause_ms = QUIET_MS,
		                             .is_asked = quiet->is_asked};
	if (attempt->job.is_confirmed && attempt->slurm_step.has_reported && !quiet->is_asked &&
	    now_ms >= quiet->ask_ms && attempt->slurm_step.id[0] != '\0' &&
	    attempt->wlbd->step_questions < QUESTIONS_MAX && !attempt->wlbd->slurm_unavailable &&
	    !wlbd_attempt_is_ordered(&attempt->incident.life) && is_launcher_waiting(attempt, now_ms))
		ask(attempt);
}

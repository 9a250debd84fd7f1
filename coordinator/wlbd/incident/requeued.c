#include "coordinator/wlbd/incident/requeued.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "coordinator/wlbd/attempts/attempts.h"
#include "coordinator/wlbd/database/outbox.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/rules/decision.h"
#include "coordinator/wlbd/slurm/slurm_requests.h"
#include "coordinator/wlbd/wlbd.h"

enum { ASK_AGAIN_MS = 100 }; /* the ends of an attempt's ranks arrive one by one */

static bool is_queued(const struct wlb_slurm_job *job)
{
	return strcmp(job->state, "PENDING") == 0;
}

/* A node that is gone takes its agent with the launcher, and Slurm then requeues the job. An agent whose ranks are
 * ended says goodbye. */
static bool is_launchers_node_gone(const struct wlbd_attempt *attempt)
{
	const struct wlbd_reporter *launcher = NULL, *reporter;
	TAILQ_FOREACH(reporter, &attempt->reporters.list, link)
	if (reporter->rank == WLBD_LAUNCHER)
		launcher = reporter;
	if (launcher == NULL || launcher->connection != NULL || launcher->goodbye)
		return false;
	TAILQ_FOREACH(reporter, &attempt->reporters.list, link)
	if (reporter->agent && strcmp(reporter->node, launcher->node) == 0)
		return reporter->connection == NULL && !reporter->goodbye;
	return false;
}

/* Slurm submits a job anew that it requeues. wlbd may see it much later. */
static double queued_at_s(const struct wlb_slurm_job *job)
{
	double now_s = wlb_clock_unix_s(), queued_s = (double)job->submit_time;
	return queued_s > 0 && queued_s < now_s ? queued_s : now_s;
}

static void note(struct wlbd_attempt *attempt, const struct wlb_slurm_job *job)
{
	struct wlbd_params params = {0};
	char reason[64];
	if (attempt->requeue.noted_ms != 0)
		return;
	attempt->requeue.noted_ms = wlb_clock_ms();
	snprintf(reason, sizeof(reason), "job %u was requeued", job->job_id);
	wlbd_log(WLBD_LOG_INFO, "run %s, attempt %lld: %s", attempt->run, (long long)attempt->number, reason);
	if (!is_launchers_node_gone(attempt)) {
		wlbd_attempt_record_end(&attempt->incident.life, WLBD_EXIT_ORDERED);
		attempt->incident.settled = true;
	}
	wlbd_params_add_integer(&params, attempt->attempt_pk);
	wlbd_params_add_integer(&params, job->restart_count);
	wlbd_params_add_text(&params, reason);
	wlbd_params_add_seconds(&params, queued_at_s(job));
	wlbd_outbox_put(attempt->wlbd->outbox, attempt->uid, attempt->run_pk,
	                "select wlb_attempt_requeued($1, $2::integer, $3, to_timestamp($4::float8))", &params);
}

static void on_job(void *context, const struct wlbd_job_facts *facts)
{
	struct wlbd_attempt *attempt = wlbd_attempt_ref_find(context);
	free(context);
	if (attempt == NULL)
		return;
	attempt->incident.is_job_asked = false;
	if (facts->found == 1 && facts->job.uid == attempt->uid && is_queued(&facts->job))
		note(attempt, &facts->job);
	if (attempt->incident.count > 0)
		wlbd_attempt_judge_soon(attempt);
}

void wlbd_requeued_ask(struct wlbd_attempt *attempt)
{
	int64_t now_ms = wlb_clock_ms();
	if (attempt->requeue.noted_ms != 0 || attempt->incident.is_job_asked ||
	    now_ms - attempt->requeue.asked_ms < ASK_AGAIN_MS)
		return;
	struct wlbd_attempt_ref *ref = malloc(sizeof(*ref));
	if (ref == NULL)
		return; /* the next poll of the jobs finds the same */
	*ref = wlbd_attempt_ref(attempt);
	attempt->incident.is_job_asked = true;
	attempt->requeue.asked_ms = now_ms;
	wlbd_slurm_job(attempt->wlbd, attempt->job_id, 0, on_job, ref);
}

void wlbd_requeued_note(struct wlbd *wlbd, int64_t run_pk, const struct wlb_slurm_job *job, int64_t asked_ms)
{
	struct wlbd_attempt *attempt;
	if (!is_queued(job))
		return;
	TAILQ_FOREACH(attempt, &wlbd->attempts->list, link)
	if (attempt->run_pk == run_pk && attempt->uid == job->uid && attempt->made_ms <= asked_ms &&
	    !wlbd_attempt_has_ended(&attempt->incident.life))
		note(attempt, job);
}

void wlbd_requeued_end(struct wlbd_attempt *attempt, int64_t now_ms)
{
	if (attempt->requeue.noted_ms != 0 && now_ms - attempt->requeue.noted_ms > WLBD_ENDED_KEPT_MS &&
	    wlbd_attempt_end(&attempt->incident.life, WLBD_EXIT_ORDERED, 0, now_ms))
		wlbd_attempt_judge_soon(attempt);
}

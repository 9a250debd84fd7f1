#include "coordinator/wlbd/incident/attempt_end.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "coordinator/wlbd/incident/faults.h"
#include "coordinator/wlbd/incident/symptoms.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/nodes/lost_nodes.h"
#include "coordinator/wlbd/rules/decision.h"
#include "coordinator/wlbd/slurm/job_poll.h"
#include "coordinator/wlbd/slurm/slurm_requests.h"
#include "coordinator/wlbd/wlbd.h"

enum {
	JUDGE_AGAIN_MS = 50,
	REPORTS_LATE_MAX_MS = 2000, /* of the ends of ranks, after that of their step */
	LAUNCHER_LATE_MAX_S = 3600, /* its report was spooled while wlbd was down */
};

static void order_end(struct wlbd_attempt *attempt, const char *reason)
{
	if (!wlbd_attempt_order(&attempt->incident.life, wlb_clock_ms()))
		return;
	wlb_text_format(attempt->ending.reason, sizeof(attempt->ending.reason), "%s", reason);
	wlbd_fault_record_reported_step(attempt);
}

/* ---- settling -------------------------------------------------------------------------------------- */

/* Slurm breaks the step on a node that is DOWN; jobs.h handles the job. */
static void act_on_lost_node(struct wlbd_attempt *attempt, const char *node)
{
	const struct wlbd_lost_node lost = {.name = node,
	                                    .run = attempt->run,
	                                    .job_id = attempt->job_id,
	                                    .uid = attempt->uid,
	                                    .node_confirmed = wlbd_attempt_nodes_confirmed(&attempt->nodes, node)};
	wlbd_lost_nodes_add(attempt->wlbd->lost_nodes, &lost);
	wlbd_job_poll_soon(attempt->wlbd->job_poll, attempt->job_id, true);
}

/* A node that stays silent is probed again and found lost again, each few seconds: its loss is recorded once. */
static bool is_recorded(struct wlbd_attempt *attempt, const struct wlbd_finding *finding)
{
	struct wlbd_reporter *reporter;
	bool is_known = false;
	if (finding->what != WLBD_FOUND_NODE)
		return false;
	TAILQ_FOREACH(reporter, &attempt->reporters.list, link)
	{
		if (strcmp(reporter->node, finding->symptom->node) != 0)
			continue;
		is_known = is_known || reporter->node_is_lost;
		reporter->node_is_lost = true;
	}
	return is_known;
}

/* The Slurm step failed, and no rank or node explains it: its end alone is recorded. */
static void settle_unexplained(struct wlbd_attempt *attempt)
{
	const struct wlbd_attempt_life *life = &attempt->incident.life;
	char detail[128];
	if (attempt->incident.settled || !wlbd_attempt_has_failed(life))
		return;
	if (life->srun_signal != 0)
		snprintf(detail, sizeof(detail), "srun was killed by signal %d", life->srun_signal);
	else
		snprintf(detail, sizeof(detail), "%s%s ended with exit code %d",
		         attempt->slurm_step.id[0] != '\0' ? "Slurm step " : "the Slurm step", attempt->slurm_step.id,
		         life->exit_code);
	wlbd_fault_record_step_failed(attempt, NULL, detail, life->srun_signal != 0, wlb_clock_unix_s());
	attempt->incident.settled = true;
	wlbd_fault_record_failed(attempt, detail);
}

/* Records why the attempt ends, and orders it to end. */
static void explain(struct wlbd_attempt *attempt, const struct wlbd_finding *cause)
{
	struct wlbd_incident *incident = &attempt->incident;
	char reason[sizeof(attempt->ending.reason)];
	wlbd_fault_text(cause, reason, sizeof(reason));
	if (!incident->settled)
		wlbd_fault_record_reason(attempt, reason);
	/* A lost node explains what was found before it, but for another lost node: reports from now on are answered
	 * with it. */
	else if (wlbd_attempt_is_ordered(&incident->life) && cause->what == WLBD_FOUND_NODE && !incident->is_node_lost)
		wlb_text_format(attempt->ending.reason, sizeof(attempt->ending.reason), "%s", reason);
	incident->settled = true;
	incident->is_node_lost = incident->is_node_lost || cause->what == WLBD_FOUND_NODE;
	order_end(attempt, reason);
}

/* Whether at least so many nodes of the attempt are left once these are lost; true where its nodes are not known. */
static bool has_nodes(const struct wlbd_attempt *attempt, const struct wlbd_finding *findings, int count, int least)
{
	const struct wlbd_reporter *reporter;
	int nodes = attempt->nodes.started_on.count, lost = 0;
	if (nodes == 0)
		nodes = attempt->slurm_step.own_nodes;
	TAILQ_FOREACH(reporter, &attempt->reporters.list, link)
	lost += reporter->node_is_lost && reporter->rank != WLBD_LAUNCHER;
	for (int i = 0; i < count; i++)
		if (findings[i].what == WLBD_FOUND_NODE &&
		    !wlbd_attempt_has_reporter(attempt, findings[i].symptom->node))
			lost++;
	return nodes == 0 || nodes - lost >= least;
}

/* Whether the attempt goes on without what was lost. Nothing watches it without its launcher. */
static bool goes_on(const struct wlbd_attempt *attempt, const struct wlbd_finding *findings, int count)
{
	const struct wlbd_attempt_life *life = &attempt->incident.life;
	int least = attempt->policy.min_nodes > 1 ? attempt->policy.min_nodes : 1;
	if (!attempt->policy.goes_on || wlbd_attempt_end_is_known(life) || wlbd_attempt_is_ordered(life))
		return false;
	for (int i = 0; i < count; i++)
		if (findings[i].what == WLBD_FOUND_LAUNCHER)
			return false;
	return has_nodes(attempt, findings, count, least);
}

static void settle(struct wlbd_attempt *attempt, const struct wlbd_finding *findings, int count)
{
	bool is_explained = !findings[0].symptom->after_end, launcher_lost = false;
	for (int i = 0; i < count; i++) {
		launcher_lost = launcher_lost || findings[i].what == WLBD_FOUND_LAUNCHER;
		if (!is_recorded(attempt, &findings[i]))
			wlbd_fault_record(attempt, &findings[i], is_explained && i == 0);
	}
	if (is_explained && !goes_on(attempt, findings, count))
		explain(attempt, &findings[0]);
	for (int i = 0; i < count; i++)
		if (findings[i].what == WLBD_FOUND_NODE)
			act_on_lost_node(attempt, findings[i].symptom->node);
	wlbd_incident_clear(&attempt->incident);
	settle_unexplained(attempt);
	if (launcher_lost) {
		wlbd_job_poll_soon(attempt->wlbd->job_poll, attempt->job_id, false);
		wlbd_symptom_silent_nodes(attempt);
	}
}

static void settle_broken_step(struct wlbd_attempt *attempt, const char *node, const char *detail, double time_s)
{
	wlbd_log(WLBD_LOG_WARNING, "run %s, attempt %lld: %s", attempt->run, (long long)attempt->number, detail);
	wlbd_fault_record_step_failed(attempt, node, detail, true, time_s);
	attempt->incident.settled = true;
	wlbd_fault_record_reason(attempt, detail);
	order_end(attempt, detail);
}

/* Also where ranks were found lost before, which depends on whether their nodes or the launcher reported first: the
 * database chooses the cause by the times. The time of a launcher whose clock differs much is not used. */
static void settle_break(struct wlbd_attempt *attempt, struct wlbd_step_break *why, const char *detail)
{
	double now_s = wlb_clock_unix_s(), time_s = why->time_s;
	if (why->why[0] == '\0' || why->recorded)
		return;
	why->recorded = true;
	settle_broken_step(attempt, why->node[0] != '\0' ? why->node : NULL, detail,
	                   time_s <= now_s && time_s > now_s - LAUNCHER_LATE_MAX_S ? time_s : now_s);
}

static void settle_reported_reasons(struct wlbd_attempt *attempt)
{
	struct wlbd_incident *incident = &attempt->incident;
	char detail[832];
	wlb_text_format(detail, sizeof(detail), "the Slurm step was not launched on %s: %s",
	                incident->launch_failure.node, incident->launch_failure.why);
	settle_break(attempt, &incident->launch_failure, detail);
	if (incident->has_slurm_ended)
		settle_break(attempt, &incident->slurm_end, incident->slurm_end.why);
}

void wlbd_attempt_end_stepd_gone(struct wlbd_attempt *attempt, const char *node)
{
	char detail[384];
	if (attempt->incident.settled || wlbd_attempt_end_is_known(&attempt->incident.life))
		return;
	bool known = attempt->slurm_step.id[0] != '\0';
	snprintf(detail, sizeof(detail), "slurmstepd%s%s on %s is gone", known ? " of step " : "",
	         attempt->slurm_step.id, node);
	settle_broken_step(attempt, node, detail, wlb_clock_unix_s());
}

void wlbd_attempt_end_no_stepd(struct wlbd_attempt *attempt)
{
	char detail[128];
	snprintf(detail, sizeof(detail), "no node has a slurmstepd of step %s any more, and srun still waits",
	         attempt->slurm_step.id);
	if (attempt->incident.settled) /* what broke it is known, and srun waits all the same */
		order_end(attempt, detail);
	else
		settle_broken_step(attempt, NULL, detail, wlb_clock_unix_s());
}

void wlbd_attempt_end_evict(struct wlbd_attempt *attempt, const char *reason)
{
	attempt->incident.settled = true;
	wlbd_fault_record_reason(attempt, reason);
	order_end(attempt, reason);
}

/* ---- judging --------------------------------------------------------------------------------------- */

/* Whether an agent may still report the rank whose end ended the step. */
static bool is_exit_awaited(const struct wlbd_attempt *attempt)
{
	const struct wlbd_incident *incident = &attempt->incident;
	const struct wlbd_reporter *reporter;
	if (!wlbd_symptom_lacks_first_exit(incident) || wlb_clock_ms() - incident->life.since_ms > REPORTS_LATE_MAX_MS)
		return false;
	TAILQ_FOREACH(reporter, &attempt->reporters.list, link)
	if (reporter->agent && reporter->connection != NULL && !reporter->goodbye)
		return true;
	return false;
}

static void judge(struct wlbd_attempt *attempt)
{
	static const struct timeval again = {0, JUDGE_AGAIN_MS * 1000};
	struct wlbd_finding *findings = calloc(WLBD_SYMPTOMS_MAX + WLBD_CONSEQUENCES_MAX, sizeof(*findings));
	int count = 0;
	enum wlbd_judgement judgement = WLBD_JUDGE_LATER;
	settle_reported_reasons(attempt);
	if (findings != NULL)
		judgement = wlbd_incident_judge(&attempt->incident, wlb_clock_ms(),
		                                attempt->wlbd->config.reconnect_grace_ms, findings, &count);
	switch (judgement) {
	case WLBD_JUDGE_LATER:
		event_add(attempt->ending.judge_timer, &again);
		break;
	case WLBD_JUDGE_NOTHING:
		wlbd_incident_clear(&attempt->incident);
		if (is_exit_awaited(attempt))
			event_add(attempt->ending.judge_timer, &again);
		else
			settle_unexplained(attempt);
		break;
	case WLBD_JUDGE_FAULTS:
		settle(attempt, findings, count);
		break;
	}
	free(findings);
}

void wlbd_attempt_end_judge(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	judge(context);
}

/* A node has one wlb-agent, whose last report says that nothing is left to report. */
bool wlbd_attempt_survivors_ended(const struct wlbd_attempt *attempt)
{
	const struct wlbd_reporter *reporter;
	int ended = 0, lost = 0;
	TAILQ_FOREACH(reporter, &attempt->reporters.list, link)
	{
		if (!reporter->agent)
			continue;
		lost += reporter->node_is_lost;
		ended += !reporter->node_is_lost && reporter->goodbye;
	}
	return lost > 0 && lost + ended == attempt->nodes.started_on.count;
}

bool wlbd_attempt_end_is_pending(const struct wlbd_attempt *attempt)
{
	return attempt->incident.count > 0 || evtimer_pending(attempt->ending.judge_timer, NULL);
}

/* ---- the end --------------------------------------------------------------------------------------- */

static void on_step_killed(void *context, const char *failure)
{
	struct wlbd_attempt *attempt = wlbd_attempt_ref_find(context);
	if (attempt != NULL && failure != NULL)
		wlbd_attempt_kill_failed(&attempt->incident.life, wlb_clock_ms());
	free(context);
}

void wlbd_attempt_end_kill_overdue(struct wlbd_attempt *attempt, int64_t now_ms)
{
	if (attempt->slurm_step.id[0] == '\0' || !wlbd_attempt_kill(&attempt->incident.life, now_ms))
		return;
	struct wlbd_attempt_ref *ref = malloc(sizeof(*ref));
	if (ref == NULL) {
		wlbd_attempt_kill_failed(&attempt->incident.life, now_ms);
		return;
	}
	*ref = wlbd_attempt_ref(attempt);
	wlbd_slurm_step_kill(attempt->wlbd, attempt->job_id, attempt->uid, attempt->slurm_step.id,
	                     attempt->ending.reason, on_step_killed, ref);
}

void wlbd_attempt_end_supersede(struct wlbd_attempt *attempt, int64_t newer)
{
	char reason[64];
	snprintf(reason, sizeof(reason), "attempt %lld has begun", (long long)newer);
	order_end(attempt, reason);
	wlbd_symptom_step_ended(attempt, WLBD_EXIT_UNKNOWN, NULL);
}

static int64_t newest_number(const struct wlbd_attempts *attempts, int64_t run_pk)
{
	const struct wlbd_attempt *attempt;
	int64_t newest = 0;
	TAILQ_FOREACH(attempt, &attempts->list, link)
	if (attempt->run_pk == run_pk && attempt->number > newest)
		newest = attempt->number;
	return newest;
}

/* As the database has ended it; how it ended is in records, should they arrive. */
static void end_older(struct wlbd_attempt *attempt)
{
	wlbd_attempt_end(&attempt->incident.life, WLBD_EXIT_UNKNOWN, 0, wlb_clock_ms());
	attempt->incident.settled = true;
	if (TAILQ_EMPTY(&attempt->questions) && !wlbd_attempt_end_is_pending(attempt))
		wlbd_attempts_remove(attempt->wlbd, attempt);
}

void wlbd_attempt_end_older(struct wlbd *wlbd, const struct wlbd_attempt *added)
{
	int64_t last = newest_number(wlbd->attempts, added->run_pk) - WLBD_RUN_ATTEMPTS_MAX;
	struct wlbd_attempt *next;
	for (struct wlbd_attempt *attempt = TAILQ_FIRST(&wlbd->attempts->list); attempt != NULL; attempt = next) {
		next = TAILQ_NEXT(attempt, link);
		if (attempt != added && attempt->run_pk == added->run_pk && attempt->number <= last)
			end_older(attempt);
	}
}

/* ---- taken into memory ---------------------------------------------------------------------------- */

/* Where the step may run on, the exit code is the one that rank 0 recorded; null: wlbd has found why it cannot go on.
 */
static void restore_end(struct wlbd_attempt *attempt, const json_t *json)
{
	struct wlbd_attempt_life *life = &attempt->incident.life;
	const json_t *exit_code = json_object_get(json, "exit_code");
	if (!json_is_true(json_object_get(json, "runs_on")))
		wlbd_attempt_end(life, WLBD_EXIT_UNKNOWN, 0, wlb_clock_ms());
	else if (json_is_integer(exit_code))
		wlbd_attempt_record_end(life, (int)json_integer_value(exit_code));
}

/* An attempt that has ended is kept for its late records. Processes of one that failed are ordered to end. Where
 * its cause is not known, wlbd ended before it had judged it: the launcher's next request says how the step ended. */
void wlbd_attempt_end_restore(struct wlbd_attempt *attempt, const json_t *json)
{
	const char *state = json_string_value(json_object_get(json, "state"));
	const char *reason = json_string_value(json_object_get(json, "reason"));
	if (state == NULL || strcmp(state, "starting") == 0 || strcmp(state, "running") == 0)
		return;
	bool is_failed = strcmp(state, "failed") == 0;
	restore_end(attempt, json);
	if (is_failed)
		wlbd_attempt_order(&attempt->incident.life, wlb_clock_ms());
	attempt->incident.settled = !is_failed || json_is_true(json_object_get(json, "is_explained"));
	wlb_text_format(attempt->ending.reason, sizeof(attempt->ending.reason), "%s",
	                reason != NULL && *reason != '\0' ? reason : "it failed");
}

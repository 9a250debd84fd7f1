#include "coordinator/wlbd/verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/client/clock.h"
#include "coordinator/wlbd/decision.h"
#include "coordinator/wlbd/jobs.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/lost_nodes.h"
#include "coordinator/wlbd/node_question.h"
#include "coordinator/wlbd/outbox.h"
#include "coordinator/wlbd/slurm_ask.h"
#include "coordinator/wlbd/wlbd.h"

enum {
	JUDGE_AGAIN_MS = 50,
	KILL_AFTER_MS = 5000,    /* from the order to end until Slurm is asked to see to it */
	PROBE_AGAIN_MS = 5000,   /* a node that stays silent */
	FORGET_AFTER_MS = 60000, /* an attempt that is over: late reports still get their order */
};

/* ---- what was found ------------------------------------------------------------------------------ */

static void describe(const struct wlbd_finding *finding, char *text, size_t size)
{
	if (finding->node_lost)
		snprintf(text, size, "node %s is lost", finding->symptom->node);
	else
		snprintf(text, size, "rank %d on %s is lost", finding->symptom->rank, finding->symptom->node);
}

static const char *evidence_of(const struct wlbd_finding *finding)
{
	if (finding->node_lost)
		return finding->symptom->kind == WLBD_SILENT ? "its reports stopped and its slurmd does not answer"
		                                             : "its connection closed and its slurmd does not answer";
	return finding->symptom->kind == WLBD_RANK_GONE
	               ? "its process is gone"
	               : "its connection closed and did not come back; its node is alive";
}

static void record_fault(struct wlbd_attempt *attempt, const char *kind, const char *rank, const char *node,
                         int64_t step, const char *detail, double time_s)
{
	char pk[24], step_text[24], time_text[32];
	snprintf(pk, sizeof(pk), "%lld", (long long)attempt->attempt_pk);
	snprintf(step_text, sizeof(step_text), "%lld", (long long)step);
	snprintf(time_text, sizeof(time_text), "%.6f", time_s);
	const char *params[] = {pk, kind, rank, node, step >= 0 ? step_text : NULL, detail, NULL, time_text};
	wlbd_outbox_put(
		attempt->wlbd->outbox, attempt->run_pk,
		"select wlb_fault_add($1, $2, $3::integer, $4, $5::bigint, $6, $7::jsonb, to_timestamp($8::float8))", 8,
		params);
}

static void record_finding(struct wlbd_attempt *attempt, const struct wlbd_finding *finding)
{
	char detail[512], rank[16];
	const struct wlbd_symptom *s = finding->symptom;
	double age_s = (double)(wlb_clock_ms() - s->at_ms) / 1000;
	describe(finding, detail, sizeof(detail));
	wlbd_log(WLBD_LOG_WARNING, "run %s, attempt %lld: %s: %s", attempt->run, (long long)attempt->number, detail,
	         evidence_of(finding));
	snprintf(rank, sizeof(rank), "%d", s->rank);
	record_fault(attempt, finding->node_lost ? "node_lost" : "rank_lost", finding->node_lost ? NULL : rank, s->node,
	             s->step, evidence_of(finding), wlb_clock_unix_s() - age_s);
	if (finding->node_lost)
		attempt->wlbd->metrics.faults_node_lost++;
	else
		attempt->wlbd->metrics.faults_rank_lost++;
}

static void record_blame(struct wlbd_attempt *attempt, const char *reason)
{
	char pk[24], time_text[32];
	snprintf(pk, sizeof(pk), "%lld", (long long)attempt->attempt_pk);
	snprintf(time_text, sizeof(time_text), "%.6f", wlb_clock_unix_s());
	const char *params[] = {pk, reason, time_text};
	wlbd_outbox_put(attempt->wlbd->outbox, attempt->run_pk,
	                "select wlb_attempt_blame($1, $2, to_timestamp($3::float8))", 3, params);
}

static void record_exit(struct wlbd_attempt *attempt, const char *reason)
{
	char pk[24], code[16], time_text[32];
	snprintf(pk, sizeof(pk), "%lld", (long long)attempt->attempt_pk);
	snprintf(code, sizeof(code), "%d", attempt->incident.exit_code);
	snprintf(time_text, sizeof(time_text), "%.6f", wlb_clock_unix_s());
	const char *params[] = {pk, code, reason, time_text};
	wlbd_outbox_put(attempt->wlbd->outbox, attempt->run_pk,
	                "select wlb_attempt_end($1, 'failed', $2::integer, $3, to_timestamp($4::float8))", 4, params);
}

/* Slurm breaks the step on a node that is DOWN. What becomes of the job, jobs.h looks after. */
static void act_on_lost_node(struct wlbd_attempt *attempt, const char *node)
{
	wlbd_lost_nodes_add(attempt->wlbd->lost_nodes, attempt, node);
	wlbd_jobs_hurry(attempt->wlbd->jobs);
}

static void order_end(struct wlbd_attempt *attempt, const char *reason)
{
	if (attempt->order_end)
		return;
	attempt->order_end = true;
	attempt->ordered_ms = wlb_clock_ms();
	snprintf(attempt->reason, sizeof(attempt->reason), "%s", reason);
}

static void settle(struct wlbd_attempt *attempt, const struct wlbd_finding *findings, int count)
{
	char reason[sizeof(attempt->reason)];
	describe(&findings[0], reason, sizeof(reason));
	for (int i = 0; i < count; i++)
		record_finding(attempt, &findings[i]);
	if (!attempt->incident.settled)
		record_blame(attempt, reason);
	attempt->incident.settled = true;
	order_end(attempt, reason);
	for (int i = 0; i < count; i++)
		if (findings[i].node_lost)
			act_on_lost_node(attempt, findings[i].symptom->node);
	wlbd_incident_clear(&attempt->incident);
}

/* The step failed and nothing says why: that, at least, is recorded. */
static void settle_unexplained(struct wlbd_attempt *attempt)
{
	char detail[128];
	int code = attempt->incident.exit_code;
	if (attempt->incident.settled || !attempt->incident.over || code == 0 || code == WLBD_EXIT_ORDERED ||
	    code == WLBD_EXIT_UNKNOWN)
		return;
	snprintf(detail, sizeof(detail), "the step ended with exit code %d", code);
	record_fault(attempt, "step_failed", NULL, NULL, -1, detail, wlb_clock_unix_s());
	record_exit(attempt, detail);
	attempt->wlbd->metrics.faults_step_failed++;
	attempt->incident.settled = true;
}

/* ---- judging --------------------------------------------------------------------------------------- */

static void judge(struct wlbd_attempt *attempt)
{
	static const struct timeval again = {0, JUDGE_AGAIN_MS * 1000};
	struct wlbd_finding *findings = calloc(WLBD_SYMPTOMS_MOST + WLBD_CONSEQUENCES_MOST, sizeof(*findings));
	int count = 0;
	enum wlbd_judgement judgement = WLBD_JUDGE_LATER;
	if (findings != NULL)
		judgement = wlbd_incident_judge(&attempt->incident, wlb_clock_ms(),
		                                attempt->wlbd->config.reconnect_grace_ms, findings, &count);
	switch (judgement) {
	case WLBD_JUDGE_LATER:
		event_add(attempt->judge_timer, &again);
		break;
	case WLBD_JUDGE_NOTHING:
		wlbd_incident_clear(&attempt->incident);
		settle_unexplained(attempt);
		break;
	case WLBD_JUDGE_FAULTS:
		settle(attempt, findings, count);
		break;
	}
	free(findings);
}

static void on_judge(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	judge(context);
}

/* Judged on the next turn of the loop: never inside a callback of the connection that just closed. */
static void judge_soon(struct wlbd_attempt *attempt)
{
	static const struct timeval now = {0, 0};
	if (attempt->judge_timer == NULL)
		attempt->judge_timer = evtimer_new(attempt->wlbd->base, on_judge, attempt);
	event_add(attempt->judge_timer, &now);
}

/* ---- symptoms -------------------------------------------------------------------------------------- */

static void on_node_answer(struct wlbd_attempt *attempt, const char *node, bool alive)
{
	for (int i = 0; i < attempt->incident.count; i++) {
		struct wlbd_symptom *s = &attempt->incident.symptoms[i];
		if (s->node_state != WLBD_NODE_ASKED || strcmp(s->node, node) != 0)
			continue;
		s->node_state = alive ? WLBD_NODE_ALIVE : WLBD_NODE_LOST;
		/* Silent on a live node: it may compute, or hang; neither makes it dead. */
		s->withdrawn = s->withdrawn || (alive && s->kind == WLBD_SILENT);
	}
	judge_soon(attempt);
}

/* NULL if out of memory, or when there are too many. */
static struct wlbd_symptom *raise_symptom(struct wlbd_attempt *attempt, enum wlbd_symptom_kind kind, const char *node,
                                          int rank, int64_t step)
{
	struct wlbd_symptom *s = wlbd_incident_add(&attempt->incident, kind, node, rank, wlb_clock_ms());
	if (s == NULL)
		return NULL;
	if (s->withdrawn) /* again, after all was well in between */
		s->at_ms = wlb_clock_ms();
	s->withdrawn = false;
	s->step = step;
	s->node_state = WLBD_NODE_ASKED;
	/* A launcher may be on a node that is not its job's, which is none of our business then. */
	if (!wlbd_attempt_nodes_allocated(&attempt->nodes, node) ||
	    wlbd_node_question_ask(attempt, node, on_node_answer) != 0)
		s->node_state = WLBD_NODE_ALIVE;
	judge_soon(attempt);
	return s;
}

static void withdraw(struct wlbd_reporter *reporter)
{
	struct wlbd_incident *incident = &reporter->attempt->incident;
	for (int i = 0; i < incident->count; i++) {
		struct wlbd_symptom *s = &incident->symptoms[i];
		if (s->kind != WLBD_RANK_GONE && strcmp(s->node, reporter->node) == 0 && s->rank == reporter->rank)
			s->withdrawn = true;
	}
}

static void on_closed(struct wlbd_reporter *reporter)
{
	struct wlbd_attempt *attempt = reporter->attempt;
	if (reporter->goodbye || (attempt->incident.over && reporter->rank != WLBD_LAUNCHER))
		return;
	wlbd_log(WLBD_LOG_DEBUG, "run %s: %s of %s closed its connection", attempt->run,
	         reporter->rank == WLBD_LAUNCHER ? "the launcher" : "the reporter", reporter->node);
	raise_symptom(attempt, WLBD_CLOSED, reporter->node, reporter->rank, reporter->step);
}

void wlbd_verdict_alive(struct wlbd_reporter *reporter, struct wlbd_connection *connection)
{
	wlbd_reporter_attach(reporter, connection, on_closed);
	reporter->reported_ms = wlb_clock_ms();
	withdraw(reporter);
	if (connection == NULL) /* it ended before its report was handled */
		on_closed(reporter);
}

void wlbd_verdict_goodbye(struct wlbd_reporter *reporter)
{
	reporter->goodbye = true;
	withdraw(reporter);
}

void wlbd_verdict_rank_gone(struct wlbd_reporter *reporter, int rank)
{
	struct wlbd_attempt *attempt = reporter->attempt;
	if (attempt->incident.settled || attempt->incident.over)
		return;
	raise_symptom(attempt, WLBD_RANK_GONE, reporter->node, rank, reporter->step);
}

void wlbd_verdict_rank_exited(struct wlbd_reporter *reporter, int rank, int code)
{
	if (code != 0)
		wlbd_verdict_rank_gone(reporter, rank);
}

/* A node that is not the attempt's is no news of it. */
static void take_first_exit(struct wlbd_attempt *attempt, const struct wlbd_first_exit *first)
{
	struct wlbd_incident *incident = &attempt->incident;
	const struct wlbd_reporter *reporter;
	int64_t step = -1;
	if (first->node == NULL || incident->told_first || incident->settled ||
	    !wlbd_attempt_nodes_have(&attempt->nodes, first->node) ||
	    !wlbd_attempt_nodes_may_run(&attempt->nodes, first->node, first->rank))
		return;
	TAILQ_FOREACH(reporter, &attempt->reporters, link)
	if (strcmp(reporter->node, first->node) == 0 && reporter->rank != WLBD_LAUNCHER)
		step = reporter->step;
	incident->told_first = true;
	struct wlbd_symptom *s = raise_symptom(attempt, WLBD_RANK_GONE, first->node, (int)first->rank, step);
	if (s != NULL)
		s->first = true;
}

void wlbd_verdict_over(struct wlbd_attempt *attempt, int exit_code, const struct wlbd_first_exit *first)
{
	if (first != NULL)
		take_first_exit(attempt, first);
	if (attempt->incident.over)
		return;
	attempt->incident.over = true;
	attempt->incident.exit_code = exit_code;
	attempt->over_ms = wlb_clock_ms();
	judge_soon(attempt);
}

void wlbd_verdict_node_dead(struct wlbd_attempt *attempt, const char *node)
{
	/* Probed again, like any other: one path to the verdict. */
	raise_symptom(attempt, WLBD_SILENT, node, WLBD_LAUNCHER, -1);
}

void wlbd_verdict_supersede(struct wlbd_attempt *attempt, int64_t newer)
{
	char reason[64];
	snprintf(reason, sizeof(reason), "attempt %lld has begun", (long long)newer);
	order_end(attempt, reason);
	wlbd_verdict_over(attempt, WLBD_EXIT_UNKNOWN, NULL);
}

bool wlbd_verdict_pending(const struct wlbd_attempt *attempt)
{
	return attempt->incident.count > 0 ||
	       (attempt->judge_timer != NULL && evtimer_pending(attempt->judge_timer, NULL));
}

/* ---- the passing of time ---------------------------------------------------------------------------- */

static void look_for_silence(struct wlbd_attempt *attempt, int64_t now)
{
	struct wlbd_reporter *reporter;
	TAILQ_FOREACH(reporter, &attempt->reporters, link)
	{
		if (reporter->connection == NULL || reporter->goodbye ||
		    now - reporter->reported_ms < attempt->wlbd->config.silence_ms ||
		    now - reporter->probed_ms < PROBE_AGAIN_MS)
			continue;
		reporter->probed_ms = now;
		raise_symptom(attempt, WLBD_SILENT, reporter->node, reporter->rank, reporter->step);
	}
}

/* After wlbd was started again, nodes have a while to come back; one that did not is probed, once. */
static void look_for_missing(struct wlbd_attempt *attempt, int64_t now)
{
	if (attempt->expected_ms == 0 || now < attempt->expected_ms)
		return;
	attempt->expected_ms = 0;
	for (int i = 0; i < attempt->nodes.started_on.count; i++) {
		const char *node = attempt->nodes.started_on.list[i];
		bool here = false;
		struct wlbd_reporter *reporter;
		TAILQ_FOREACH(reporter, &attempt->reporters, link)
		here = here || strcmp(reporter->node, node) == 0;
		if (!here)
			raise_symptom(attempt, WLBD_SILENT, node, WLBD_LAUNCHER, -1);
	}
}

static void see_to_the_end(struct wlbd_attempt *attempt, int64_t now)
{
	if (!attempt->order_end || attempt->incident.over || attempt->kill_sent || attempt->slurm_step[0] == '\0' ||
	    now - attempt->ordered_ms < KILL_AFTER_MS)
		return;
	attempt->kill_sent = true;
	wlbd_slurm_step_kill(attempt->wlbd, attempt->job_id, attempt->uid, attempt->slurm_step, attempt->reason);
}

static bool is_forgettable(const struct wlbd_attempt *attempt, int64_t now)
{
	const struct wlbd_reporter *reporter;
	if (!attempt->incident.over || now - attempt->over_ms < FORGET_AFTER_MS || !TAILQ_EMPTY(&attempt->questions) ||
	    wlbd_verdict_pending(attempt))
		return false;
	TAILQ_FOREACH(reporter, &attempt->reporters, link)
	if (reporter->connection != NULL)
		return false;
	return true;
}

void wlbd_verdict_tick(struct wlbd *wlbd)
{
	int64_t now = wlb_clock_ms();
	struct wlbd_attempt *next;
	for (struct wlbd_attempt *attempt = TAILQ_FIRST(&wlbd->attempts->list); attempt != NULL; attempt = next) {
		next = TAILQ_NEXT(attempt, link);
		if (!attempt->incident.over) {
			look_for_silence(attempt, now);
			look_for_missing(attempt, now);
			see_to_the_end(attempt, now);
		}
		if (is_forgettable(attempt, now))
			wlbd_attempts_remove(wlbd, attempt);
	}
}

#include "coordinator/wlbd/liveness/verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "coordinator/wlbd/database/outbox.h"
#include "coordinator/wlbd/liveness/lost_nodes.h"
#include "coordinator/wlbd/liveness/node_question.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/rules/decision.h"
#include "coordinator/wlbd/slurm/jobs.h"
#include "coordinator/wlbd/slurm/slurm_ask.h"
#include "coordinator/wlbd/wlbd.h"

enum {
	JUDGE_AGAIN_MS = 50,
	KILL_AFTER_MS = 5000,    /* from the order to end until Slurm is asked to see to it */
	PROBE_AGAIN_MS = 5000,   /* a node that stays silent */
	FORGET_AFTER_MS = 60000, /* an attempt that is over: late reports still get their order */
	SILENT_NODES_MOST = 64,  /* that are asked about after a launcher's end */
};

/* ---- what was found ------------------------------------------------------------------------------ */

/* As wlb_fault_text of the schema has it. */
static void describe(const struct wlbd_finding *finding, char *text, size_t size)
{
	const struct wlbd_symptom *s = finding->symptom;
	if (finding->what == WLBD_FOUND_NODE)
		snprintf(text, size, "node %s is lost", s->node);
	else if (finding->what == WLBD_FOUND_LAUNCHER)
		snprintf(text, size, "wlb run on %s was killed", s->node);
	else if (s->exit_code > 128)
		snprintf(text, size, "rank %d on %s was killed by signal %d", s->rank, s->node, s->exit_code - 128);
	else if (s->exit_code != 0)
		snprintf(text, size, "rank %d on %s ended with exit code %d", s->rank, s->node, s->exit_code);
	else
		snprintf(text, size, "rank %d on %s is lost", s->rank, s->node);
}

static const char *detail_of(const struct wlbd_finding *finding)
{
	if (finding->what == WLBD_FOUND_NODE)
		return finding->symptom->kind == WLBD_SILENT ? "its reports stopped and its slurmd does not answer"
		                                             : "its connection closed and its slurmd does not answer";
	if (finding->symptom->exit_code != 0)
		return "its exit was told by Slurm";
	return finding->symptom->kind == WLBD_RANK_GONE
	               ? "its process is gone"
	               : "its connection closed and did not come back; its node is alive";
}

/* A time of the monotonic clock, in seconds since 1970. */
static double unix_time_s(int64_t at_ms)
{
	return wlb_clock_unix_s() - (double)(wlb_clock_ms() - at_ms) / 1000;
}

/* What wlb_attempt_cause of the schema decides by; NULL: nothing. */
static json_t *proof_of(const struct wlbd_finding *finding, bool is_cause)
{
	const struct wlbd_symptom *s = finding->symptom;
	if (finding->what == WLBD_FOUND_LAUNCHER)
		return json_pack("{s:f}", "during", unix_time_s(s->at_ms));
	if (finding->what == WLBD_FOUND_NODE)
		return s->alive_ms != 0 ? json_pack("{s:f}", "alive_at", unix_time_s(s->alive_ms)) : NULL;
	return s->exit_code != 0 ? json_pack("{s:i, s:b}", "exit_code", s->exit_code, "first", is_cause) : NULL;
}

struct fault {
	const char *kind;
	int rank;         /* -1: of none */
	const char *node; /* NULL: of none */
	int64_t step;     /* -1: unknown */
	const char *detail;
	json_t *proof; /* NULL: none; taken over */
	double time_s;
};

static void record_fault(struct wlbd *wlbd, int64_t run_pk, int64_t attempt_pk, const struct fault *fault)
{
	struct wlbd_params params = {0};
	char *proof = fault->proof != NULL ? json_dumps(fault->proof, JSON_COMPACT) : NULL;
	wlbd_params_add_integer(&params, attempt_pk);
	wlbd_params_add_text(&params, fault->kind);
	wlbd_params_add_integer_if(&params, fault->rank >= 0, fault->rank);
	wlbd_params_add_text(&params, fault->node);
	wlbd_params_add_integer_if(&params, fault->step >= 0, fault->step);
	wlbd_params_add_text(&params, fault->detail);
	wlbd_params_add_text(&params, proof);
	wlbd_params_add_seconds(&params, fault->time_s);
	wlbd_outbox_put(
		wlbd->outbox, run_pk,
		"select wlb_fault_found($1, $2, $3::integer, $4, $5::bigint, $6, $7::jsonb, to_timestamp($8::float8))",
		&params);
	json_decref(fault->proof);
	free(proof);
}

static void count_fault(struct wlbd_counters *counters, enum wlbd_found what)
{
	if (what == WLBD_FOUND_NODE)
		counters->faults_node_lost++;
	else if (what == WLBD_FOUND_RANK)
		counters->faults_rank_lost++;
	else
		counters->faults_launcher_lost++;
}

static void record_finding(struct wlbd_attempt *attempt, const struct wlbd_finding *finding, bool is_cause)
{
	static const char *const kinds[] = {[WLBD_FOUND_NODE] = "node_lost",
	                                    [WLBD_FOUND_RANK] = "rank_lost",
	                                    [WLBD_FOUND_LAUNCHER] = "launcher_lost"};
	char text[512];
	const struct wlbd_symptom *s = finding->symptom;
	describe(finding, text, sizeof(text));
	wlbd_log(WLBD_LOG_WARNING, "run %s, attempt %lld: %s: %s", attempt->run, (long long)attempt->number, text,
	         detail_of(finding));
	struct fault fault = {.kind = kinds[finding->what],
	                      .rank = finding->what == WLBD_FOUND_RANK ? s->rank : -1,
	                      .node = s->node,
	                      .step = s->step,
	                      .detail = detail_of(finding),
	                      .proof = proof_of(finding, is_cause),
	                      .time_s = unix_time_s(s->at_ms)};
	record_fault(attempt->wlbd, attempt->run_pk, attempt->attempt_pk, &fault);
	count_fault(&attempt->wlbd->counters, finding->what);
}

static void record_blame(struct wlbd_attempt *attempt, const char *reason)
{
	struct wlbd_params params = {0};
	wlbd_params_add_integer(&params, attempt->attempt_pk);
	wlbd_params_add_text(&params, reason);
	wlbd_params_add_seconds(&params, wlb_clock_unix_s());
	wlbd_outbox_put(attempt->wlbd->outbox, attempt->run_pk,
	                "select wlb_attempt_blame($1, $2, to_timestamp($3::float8))", &params);
}

static void record_exit(struct wlbd_attempt *attempt, const char *reason)
{
	struct wlbd_params params = {0};
	wlbd_params_add_integer(&params, attempt->attempt_pk);
	wlbd_params_add_integer(&params, attempt->incident.exit_code);
	wlbd_params_add_text(&params, reason);
	wlbd_params_add_seconds(&params, wlb_clock_unix_s());
	wlbd_outbox_put(attempt->wlbd->outbox, attempt->run_pk,
	                "select wlb_attempt_end($1, 'failed', $2::integer, $3, to_timestamp($4::float8))", &params);
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

static bool is_heard(const struct wlbd_attempt *attempt, const char *node)
{
	const struct wlbd_reporter *reporter;
	TAILQ_FOREACH(reporter, &attempt->reporters, link)
	if (reporter->rank != WLBD_LAUNCHER && reporter->connection != NULL && strcmp(reporter->node, node) == 0)
		return true;
	return false;
}

/* The end of the launcher takes the reporters along, or comes before they have reported: a node that was lost at the same
 * moment closes no connection then. */
static void ask_about_silent_nodes(struct wlbd_attempt *attempt)
{
	const struct wlbd_names *names = &attempt->nodes.started_on;
	int asked = 0;
	for (int i = 0; i < names->count && asked < SILENT_NODES_MOST; i++)
		if (!is_heard(attempt, names->list[i])) {
			wlbd_verdict_node_dead(attempt, names->list[i]);
			asked++;
		}
}

static void settle(struct wlbd_attempt *attempt, const struct wlbd_finding *findings, int count)
{
	bool launcher_lost = findings[count - 1].what == WLBD_FOUND_LAUNCHER || findings[0].what == WLBD_FOUND_LAUNCHER;
	char reason[sizeof(attempt->reason)];
	describe(&findings[0], reason, sizeof(reason));
	for (int i = 0; i < count; i++)
		record_finding(attempt, &findings[i], i == 0);
	if (!attempt->incident.settled)
		record_blame(attempt, reason);
	/* A node explains what was found before it: who asks from now on is told so. */
	else if (attempt->order_end && findings[0].what == WLBD_FOUND_NODE)
		snprintf(attempt->reason, sizeof(attempt->reason), "%s", reason);
	attempt->incident.settled = true;
	order_end(attempt, reason);
	for (int i = 0; i < count; i++)
		if (findings[i].what == WLBD_FOUND_NODE)
			act_on_lost_node(attempt, findings[i].symptom->node);
	wlbd_incident_clear(&attempt->incident);
	if (launcher_lost) {
		wlbd_jobs_hurry(attempt->wlbd->jobs);
		ask_about_silent_nodes(attempt);
	}
}

static void record_step_failed(struct wlbd_attempt *attempt, const char *node, const char *detail, bool is_broken)
{
	struct fault fault = {.kind = "step_failed",
	                      .rank = -1,
	                      .node = node,
	                      .step = -1,
	                      .detail = detail,
	                      .proof = is_broken ? json_pack("{s:b}", "step_broken", 1) : NULL,
	                      .time_s = wlb_clock_unix_s()};
	record_fault(attempt->wlbd, attempt->run_pk, attempt->attempt_pk, &fault);
	attempt->wlbd->counters.faults_step_failed++;
	attempt->incident.settled = true;
}

/* The step failed and no rank or node says why: that, at least, is recorded. */
static void settle_unexplained(struct wlbd_attempt *attempt)
{
	char detail[128];
	int code = attempt->incident.exit_code;
	int number = attempt->incident.srun_signal;
	if (attempt->incident.settled || !attempt->incident.over || code == 0 || code == WLBD_EXIT_ORDERED ||
	    code == WLBD_EXIT_UNKNOWN)
		return;
	if (number != 0)
		snprintf(detail, sizeof(detail), "srun was killed by signal %d", number);
	else
		snprintf(detail, sizeof(detail), "the step ended with exit code %d", code);
	record_step_failed(attempt, NULL, detail, number != 0);
	record_exit(attempt, detail);
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

/* Of the node, as its reporters show it; 0 when none has been seen. A connection that closed was alive until then. */
static int64_t last_sign_of_life(const struct wlbd_attempt *attempt, enum wlbd_symptom_kind kind, const char *node)
{
	const struct wlbd_reporter *reporter;
	int64_t latest_ms = 0;
	if (kind != WLBD_SILENT)
		return wlb_clock_ms();
	TAILQ_FOREACH(reporter, &attempt->reporters, link)
	if (strcmp(reporter->node, node) == 0 && reporter->reported_ms > latest_ms)
		latest_ms = reporter->reported_ms;
	return latest_ms;
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
	s->alive_ms = last_sign_of_life(attempt, kind, node);
	s->node_state = WLBD_NODE_ASKED;
	/* A launcher may be on a node that is not its job's: that one is not probed. */
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

/* A launcher that had been silent for long before: wlbd itself closes such connections, and it may go on. */
static bool was_stopped(const struct wlbd_reporter *reporter)
{
	return reporter->rank == WLBD_LAUNCHER &&
	       wlb_clock_ms() - reporter->reported_ms > reporter->attempt->wlbd->config.silence_ms;
}

static void on_closed(struct wlbd_reporter *reporter)
{
	struct wlbd_attempt *attempt = reporter->attempt;
	if (reporter->goodbye || (attempt->incident.over && reporter->rank != WLBD_LAUNCHER))
		return;
	wlbd_log(WLBD_LOG_DEBUG, "run %s: %s of %s closed its connection", attempt->run,
	         reporter->rank == WLBD_LAUNCHER ? "the launcher" : "the reporter", reporter->node);
	raise_symptom(attempt, reporter->agent || was_stopped(reporter) ? WLBD_SILENT : WLBD_CLOSED, reporter->node,
	              reporter->rank, reporter->step);
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

static struct wlbd_symptom *find_gone_rank(struct wlbd_incident *incident, int rank)
{
	for (int i = 0; i < incident->count; i++)
		if (incident->symptoms[i].kind == WLBD_RANK_GONE && incident->symptoms[i].rank == rank)
			return &incident->symptoms[i];
	return NULL;
}

/* A rank that ends by order or for bad input is no loss, and takes the others of its step along. */
static void take_deliberate_exit(struct wlbd_incident *incident, int rank)
{
	struct wlbd_symptom *gone = find_gone_rank(incident, rank);
	if (gone != NULL)
		gone->withdrawn = true;
	incident->deliberate_ms = wlb_clock_ms();
}

void wlbd_verdict_rank_exited(struct wlbd_reporter *reporter, int rank, int code)
{
	struct wlbd_incident *incident = &reporter->attempt->incident;
	if (code == 0)
		return;
	if (code == WLBD_EXIT_ORDERED || code == WLBD_EXIT_BAD_INPUT) {
		take_deliberate_exit(incident, rank);
		return;
	}
	wlbd_verdict_rank_gone(reporter, rank);
	struct wlbd_symptom *gone = find_gone_rank(incident, rank);
	if (gone != NULL && gone->exit_code == 0)
		gone->exit_code = code;
}

void wlbd_verdict_stepd_gone(struct wlbd_reporter *reporter)
{
	struct wlbd_attempt *attempt = reporter->attempt;
	char detail[384];
	if (attempt->incident.settled || attempt->incident.over)
		return;
	bool known = attempt->slurm_step[0] != '\0';
	snprintf(detail, sizeof(detail), "slurmstepd%s%s on %s is gone", known ? " of step " : "", attempt->slurm_step,
	         reporter->node);
	wlbd_log(WLBD_LOG_WARNING, "run %s, attempt %lld: %s", attempt->run, (long long)attempt->number, detail);
	record_step_failed(attempt, reporter->node, detail, true);
	record_blame(attempt, detail);
	order_end(attempt, detail);
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
	if (s == NULL)
		return;
	s->first = true;
	s->exit_code = 128 + (int)first->signal;
}

void wlbd_verdict_over(struct wlbd_attempt *attempt, int exit_code, const struct wlbd_first_exit *first)
{
	if (first != NULL)
		take_first_exit(attempt, first);
	if (attempt->incident.over)
		return;
	attempt->incident.over = true;
	attempt->incident.exit_code = exit_code;
	attempt->incident.srun_signal = first != NULL ? (int)first->srun_signal : 0;
	attempt->over_ms = wlb_clock_ms();
	judge_soon(attempt);
}

void wlbd_verdict_job_killed(struct wlbd *wlbd, int64_t run_pk, int64_t attempt_pk, const char *kind, const char *node,
                             const char *detail, double time_s)
{
	struct fault fault = {.kind = kind,
	                      .rank = -1,
	                      .node = node[0] != '\0' ? node : NULL,
	                      .step = -1,
	                      .detail = detail,
	                      .proof = time_s > 0 ? json_pack("{s:f}", "during", time_s) : NULL,
	                      .time_s = time_s > 0 ? time_s : wlb_clock_unix_s()};
	record_fault(wlbd, run_pk, attempt_pk, &fault);
	if (strcmp(kind, "script_lost") == 0)
		wlbd->counters.faults_script_lost++;
	else
		wlbd->counters.faults_launcher_lost++;
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

/* A node whose agent has died is asked after for as long as the step runs, since nobody reports from it. */
static void look_for_silence(struct wlbd_attempt *attempt, int64_t now)
{
	struct wlbd_reporter *reporter;
	TAILQ_FOREACH(reporter, &attempt->reporters, link)
	{
		if ((reporter->connection == NULL && !reporter->agent) || reporter->goodbye ||
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

/* While the database is away, what its launcher said of the end is known here alone. */
static bool has_recorded_for(const struct wlbd *wlbd, int64_t now, int64_t ms)
{
	return wlbd->database_was_up && now - wlbd->recording_since_ms >= ms;
}

static bool is_forgettable(const struct wlbd_attempt *attempt, int64_t now)
{
	const struct wlbd_reporter *reporter;
	if (!attempt->incident.over || now - attempt->over_ms < FORGET_AFTER_MS || !TAILQ_EMPTY(&attempt->questions) ||
	    wlbd_verdict_pending(attempt) || !has_recorded_for(attempt->wlbd, now, FORGET_AFTER_MS))
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

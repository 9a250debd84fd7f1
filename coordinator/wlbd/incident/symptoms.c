#include "coordinator/wlbd/incident/symptoms.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "coordinator/wlbd/incident/faults.h"
#include "coordinator/wlbd/incident/node_question.h"
#include "coordinator/wlbd/incident/requeued.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/rules/decision.h"
#include "coordinator/wlbd/wlbd.h"

enum {
	SILENT_NODES_MAX = 64,
	PROBE_AGAIN_MS = 5000, /* of a node that stays silent */
	GAP_MS = 3000,         /* between two reports, of which one is due each second */
	WAITED_MS = 1000, /* a request that has waited so long, for munged as a rule, may find that its client left */
	LATE_MS = 10000,  /* so long after a gap a reporter may still pause between its requests */
};

/* ---- raising and withdrawing ------------------------------------------------------------------------- */

/* Returns when the node last showed life, as far as its reporters know; 0: it has not. A connection that has just
 * closed was open until now. */
static int64_t last_sign_of_life(const struct wlbd_attempt *attempt, enum wlbd_symptom_kind kind, const char *node)
{
	const struct wlbd_reporter *reporter;
	int64_t latest_ms = 0;
	if (kind != WLBD_SILENT)
		return wlb_clock_ms();
	TAILQ_FOREACH(reporter, &attempt->reporters.list, link)
	if (strcmp(reporter->node, node) == 0 && reporter->reported_ms > latest_ms)
		latest_ms = reporter->reported_ms;
	return latest_ms;
}

/* Returns NULL if out of memory, or where there are too many. */
static struct wlbd_symptom *raise_symptom(struct wlbd_attempt *attempt, enum wlbd_symptom_kind kind, const char *node,
                                          int rank, int64_t step)
{
	struct wlbd_symptom *s = wlbd_incident_add(&attempt->incident, kind, node, rank, wlb_clock_ms());
	if (s == NULL)
		return NULL;
	if (s->withdrawn) /* raised again after it was withdrawn */
		s->at_ms = wlb_clock_ms();
	s->withdrawn = false;
	s->step = step;
	s->alive_ms = last_sign_of_life(attempt, kind, node);
	s->node_state = WLBD_NODE_ASKED;
	if (kind != WLBD_SILENT)
		wlbd_requeued_ask(attempt);
	/* A launcher may run on a node that is not its job's, which is not probed. */
	if (!wlbd_attempt_nodes_allocated(&attempt->nodes, node) || wlbd_node_question_ask(attempt, node) != 0)
		s->node_state = WLBD_NODE_ALIVE;
	wlbd_attempt_judge_soon(attempt);
	return s;
}

static void withdraw_symptoms(struct wlbd_reporter *reporter)
{
	struct wlbd_incident *incident = &reporter->attempt->incident;
	for (int i = 0; i < incident->count; i++) {
		struct wlbd_symptom *s = &incident->symptoms[i];
		if (s->kind != WLBD_RANK_GONE && strcmp(s->node, reporter->node) == 0 && s->rank == reporter->rank)
			s->withdrawn = true;
	}
}

/* ---- connections ------------------------------------------------------------------------------------- */

/* A process that was stopped, or in a debugger, may continue later. Its connection ends because wlbd closes it, or
 * because the process found, when it continued, that its last request had not been answered. */
static bool was_stopped(const struct wlbd_reporter *reporter, bool is_given_up)
{
	return is_given_up || wlb_clock_ms() - reporter->reported_ms > reporter->attempt->wlbd->config.silence_ms;
}

/* wlbd did not respond, or the network between them failed: the process closed its connection because wlbd did not
 * answer, and then pauses. Reports that it had sent before may still arrive together with the end of the connection. */
static bool was_cut_off(const struct wlbd_reporter *reporter)
{
	int64_t now_ms = wlb_clock_ms();
	return now_ms - reporter->reported_ms > GAP_MS ||
	       (reporter->late_ms != 0 && now_ms - reporter->late_ms < LATE_MS);
}

/* A connection that need not be the end of a process: only its node is probed. After rank 0 has recorded the end the
 * processes of ranks end too. */
static bool is_silence(const struct wlbd_reporter *reporter, bool is_given_up)
{
	return reporter->agent || was_stopped(reporter, is_given_up) ||
	       (reporter->rank != WLBD_LAUNCHER && wlbd_attempt_end_is_known(&reporter->attempt->incident.life));
}

static void note_closed(struct wlbd_reporter *reporter, bool is_given_up)
{
	struct wlbd_attempt *attempt = reporter->attempt;
	bool after_end = wlbd_attempt_has_ended(&attempt->incident.life) && reporter->rank != WLBD_LAUNCHER;
	if (reporter->goodbye || (after_end && attempt->incident.life.exit_code == 0))
		return;
	wlbd_log(WLBD_LOG_DEBUG, "run %s: %s of %s closed its connection", attempt->run,
	         reporter->rank == WLBD_LAUNCHER ? "the launcher" : "the reporter", reporter->node);
	struct wlbd_symptom *s = raise_symptom(attempt, is_silence(reporter, is_given_up) ? WLBD_SILENT : WLBD_CLOSED,
	                                       reporter->node, reporter->rank, reporter->step);
	if (s == NULL)
		return;
	s->cut_off = was_cut_off(reporter);
	s->after_end = after_end && !is_given_up;
}

static void on_closed(struct wlbd_connection *connection, void *context)
{
	struct wlbd_reporter *reporter = context;
	wlbd_reporter_detach(reporter);
	note_closed(reporter, wlbd_connection_was_given_up(connection));
}

/* Whether the reporter may have been without an answer before this report. After a restart wlbd does not know when the
 * reports before its first one were sent. */
static bool is_late(const struct wlbd_reporter *reporter, int64_t arrived_ms, int64_t now_ms)
{
	if (now_ms - arrived_ms > WAITED_MS)
		return true;
	return reporter->reported_ms != 0 ? now_ms - reporter->reported_ms > GAP_MS
	                                  : reporter->attempt->unreported.due_ms != 0;
}

static void note_report(struct wlbd_reporter *reporter, int64_t arrived_ms)
{
	int64_t now_ms = wlb_clock_ms();
	if (is_late(reporter, arrived_ms, now_ms))
		reporter->late_ms = now_ms;
	reporter->reported_ms = now_ms;
}

void wlbd_symptom_alive(struct wlbd_reporter *reporter, struct wlbd_connection *connection, int64_t arrived_ms)
{
	if (connection == NULL)
		wlbd_reporter_detach(reporter);
	else if (wlbd_reporter_attach(reporter, connection) == 0)
		wlbd_connection_on_close(connection, on_closed, reporter);
	note_report(reporter, arrived_ms);
	reporter->node_is_lost = false;
	withdraw_symptoms(reporter);
	if (connection == NULL)
		note_closed(reporter, false);
}

void wlbd_symptom_goodbye(struct wlbd_reporter *reporter)
{
	reporter->goodbye = true;
	withdraw_symptoms(reporter);
}

/* ---- ranks ------------------------------------------------------------------------------------------- */

bool wlbd_symptom_lacks_first_exit(const struct wlbd_incident *incident)
{
	return !incident->settled && !incident->first_exit_known && incident->life.srun_signal == 0 &&
	       wlbd_attempt_has_failed(&incident->life);
}

void wlbd_symptom_rank_gone(struct wlbd_reporter *reporter, int rank)
{
	struct wlbd_attempt *attempt = reporter->attempt;
	bool is_known = attempt->incident.settled || wlbd_attempt_end_is_known(&attempt->incident.life);
	if (is_known && !wlbd_symptom_lacks_first_exit(&attempt->incident))
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

/* A rank that ends by order, as it was asked to, or because of bad input is not lost; the other ranks of its step end
 * after it. */
static void note_deliberate_exit(struct wlbd_incident *incident, int rank)
{
	struct wlbd_symptom *gone = find_gone_rank(incident, rank);
	if (gone != NULL)
		gone->withdrawn = true;
	incident->deliberate_ms = wlb_clock_ms();
}

/* Whether wlbd was started again, and nodes of the attempt have neither reported nor answered a probe since. */
static bool are_nodes_awaited(const struct wlbd_attempt *attempt)
{
	return attempt->unreported.due_ms != 0 || attempt->unreported.nodes.count > 0;
}

/* Whether a node that wlbd does not know to be lost may be why a rank ended: Slurm kills the ranks of a step that lost
 * a node, a rank with a broken pipe may have written to one on it, and a node may have died before wlbd was started
 * again. */
static bool may_follow_from_lost_node(const struct wlbd_attempt *attempt, int code)
{
	return are_nodes_awaited(attempt) || code == 128 + SIGKILL || code == 128 + SIGTERM || code == 128 + SIGPIPE;
}

void wlbd_symptom_rank_exited(struct wlbd_reporter *reporter, int rank, int code)
{
	struct wlbd_incident *incident = &reporter->attempt->incident;
	if (code == 0)
		return;
	if (wlbd_exit_is_deliberate(code)) {
		note_deliberate_exit(incident, rank);
		return;
	}
	bool is_first = incident->count == 0;
	wlbd_symptom_rank_gone(reporter, rank);
	struct wlbd_symptom *gone = find_gone_rank(incident, rank);
	if (gone != NULL && gone->exit_code == 0)
		gone->exit_code = code;
	if (is_first && gone != NULL && may_follow_from_lost_node(reporter->attempt, code))
		wlbd_symptom_silent_nodes(reporter->attempt);
}

/* ---- nodes ------------------------------------------------------------------------------------------- */

void wlbd_symptom_silent_reporters(struct wlbd_attempt *attempt, int64_t now_ms)
{
	struct wlbd_reporter *reporter;
	TAILQ_FOREACH(reporter, &attempt->reporters.list, link)
	{
		if ((reporter->connection == NULL && !reporter->agent) || reporter->goodbye ||
		    now_ms - reporter->reported_ms < attempt->wlbd->config.silence_ms ||
		    now_ms - reporter->probed_ms < PROBE_AGAIN_MS)
			continue;
		reporter->probed_ms = now_ms;
		raise_symptom(attempt, WLBD_SILENT, reporter->node, reporter->rank, reporter->step);
	}
}

/* Returns the reporter for the ranks of the node; NULL: none has reported. */
static const struct wlbd_reporter *find_reporter(const struct wlbd_attempt *attempt, const char *node)
{
	const struct wlbd_reporter *reporter;
	TAILQ_FOREACH(reporter, &attempt->reporters.list, link)
	if (reporter->rank != WLBD_LAUNCHER && strcmp(reporter->node, node) == 0)
		return reporter;
	return NULL;
}

int wlbd_symptom_node_silent(struct wlbd_attempt *attempt, const char *node)
{
	const struct wlbd_attempt_life *life = &attempt->incident.life;
	const struct wlbd_reporter *reporter = find_reporter(attempt, node);
	struct wlbd_symptom *s = raise_symptom(attempt, WLBD_SILENT, node, WLBD_LAUNCHER, -1);
	if (s != NULL && reporter != NULL && reporter->goodbye && !reporter->stepd_gone)
		s->after_end = wlbd_attempt_has_ended(life) || wlbd_attempt_is_ordered(life);
	return s != NULL ? 0 : -1;
}

static bool is_suspected(const struct wlbd_incident *incident, const char *node)
{
	for (int i = 0; i < incident->count; i++)
		if (strcmp(incident->symptoms[i].node, node) == 0)
			return true;
	return false;
}

void wlbd_symptom_node_silent_after_end(struct wlbd_attempt *attempt, const char *node)
{
	const struct wlbd_reporter *reporter = find_reporter(attempt, node);
	if (reporter != NULL && !reporter->node_is_lost && attempt->incident.life.exit_code != 0 &&
	    !is_suspected(&attempt->incident, node))
		wlbd_symptom_node_silent(attempt, node);
}

static bool is_connected(const struct wlbd_attempt *attempt, const char *node)
{
	const struct wlbd_reporter *reporter = find_reporter(attempt, node);
	return reporter != NULL && reporter->connection != NULL;
}

void wlbd_symptom_silent_nodes(struct wlbd_attempt *attempt)
{
	const struct wlbd_names *names = &attempt->nodes.started_on;
	int max = are_nodes_awaited(attempt) ? WLBD_SYMPTOMS_MAX : SILENT_NODES_MAX;
	int suspected = 0;
	for (int i = 0; i < names->count && suspected < max; i++) {
		if (is_connected(attempt, names->list[i]))
			continue;
		wlbd_symptom_node_silent(attempt, names->list[i]);
		suspected++;
	}
}

/* ---- the end of the step ----------------------------------------------------------------------------- */

/* Ignored where the node or the rank is not the attempt's. A rank that ended deliberately was not lost. */
static void note_first_exit(struct wlbd_attempt *attempt, const struct wlbd_first_exit *first)
{
	struct wlbd_incident *incident = &attempt->incident;
	const struct wlbd_reporter *reporter;
	int64_t step = -1;
	if (first->node == NULL || wlbd_exit_is_deliberate((int)first->exit_code) || incident->first_exit_known ||
	    incident->settled || !wlbd_attempt_nodes_have(&attempt->nodes, first->node) ||
	    !wlbd_attempt_nodes_may_run(&attempt->nodes, first->node, first->rank))
		return;
	TAILQ_FOREACH(reporter, &attempt->reporters.list, link)
	if (strcmp(reporter->node, first->node) == 0 && reporter->rank != WLBD_LAUNCHER)
		step = reporter->step;
	incident->first_exit_known = true;
	struct wlbd_symptom *s = raise_symptom(attempt, WLBD_RANK_GONE, first->node, (int)first->rank, step);
	if (s == NULL)
		return;
	s->first = true;
	s->exit_code = (int)first->exit_code;
	if (may_follow_from_lost_node(attempt, s->exit_code))
		wlbd_symptom_silent_nodes(attempt);
}

/* The first that is reported counts. */
static void take_break(struct wlbd_step_break *kept, const struct wlbd_reported_reason *reported)
{
	if (kept->why[0] != '\0' || reported->why == NULL)
		return;
	snprintf(kept->node, sizeof(kept->node), "%s", reported->node != NULL ? reported->node : "");
	wlb_text_format(kept->why, sizeof(kept->why), "%s", reported->why);
	kept->time_s = reported->time_s;
	kept->is_certain = reported->is_certain;
}

/* Ignored where the node is not the attempt's. */
static void note_launch_failure(struct wlbd_attempt *attempt, const struct wlbd_reported_reason *failure)
{
	if (failure->node == NULL || !wlbd_attempt_nodes_have(&attempt->nodes, failure->node))
		return;
	take_break(&attempt->incident.launch_failure, failure);
	wlbd_attempt_judge_soon(attempt);
}

void wlbd_symptom_slurm_ends(struct wlbd_attempt *attempt, const struct wlbd_reported_reason *end)
{
	struct wlbd_incident *incident = &attempt->incident;
	take_break(&incident->slurm_end, end);
	if (incident->slurm_end.why[0] != '\0' && incident->slurm_end_ms == 0)
		incident->slurm_end_ms = wlb_clock_ms();
}

void wlbd_symptom_step_ended(struct wlbd_attempt *attempt, int exit_code, const struct wlbd_first_exit *first)
{
	if (first != NULL) {
		note_first_exit(attempt, first);
		note_launch_failure(attempt, &first->launch_failure);
		wlbd_symptom_slurm_ends(attempt, &first->slurm_end);
		attempt->incident.has_slurm_ended = attempt->incident.has_slurm_ended || first->slurm_end.why != NULL;
	}
	int srun_signal = first != NULL ? (int)first->srun_signal : 0;
	bool ends = wlbd_attempt_end(&attempt->incident.life, exit_code, srun_signal, wlb_clock_ms());
	if (ends)
		wlbd_fault_record_reported_step(attempt);
	if (ends || wlbd_attempt_explain_end(&attempt->incident.life, exit_code, srun_signal))
		wlbd_attempt_judge_soon(attempt);
}

static bool has_launcher(const struct wlbd_attempt *attempt)
{
	const struct wlbd_reporter *reporter;
	TAILQ_FOREACH(reporter, &attempt->reporters.list, link)
	if (reporter->rank == WLBD_LAUNCHER)
		return reporter->connection != NULL && !reporter->goodbye;
	return false;
}

void wlbd_symptom_end_recorded(struct wlbd_attempt *attempt, int exit_code)
{
	if (has_launcher(attempt))
		wlbd_attempt_record_end(&attempt->incident.life, exit_code);
	else
		wlbd_symptom_step_ended(attempt, exit_code, NULL);
}

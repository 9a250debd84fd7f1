/* POST /v1/runs/RUN/attempts: the facts are gathered one after the other, then decision.h decides. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "coordinator/wlbd/database/outbox.h"
#include "coordinator/wlbd/http/fields.h"
#include "coordinator/wlbd/http/reply.h"
#include "coordinator/wlbd/liveness/confirm_run.h"
#include "coordinator/wlbd/liveness/node_probe.h"
#include "coordinator/wlbd/liveness/symptoms.h"
#include "coordinator/wlbd/liveness/verdict.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/requests/find_attempt.h"
#include "coordinator/wlbd/requests/first_exit.h"
#include "coordinator/wlbd/requests/handlers.h"
#include "coordinator/wlbd/requests/outdated.h"
#include "coordinator/wlbd/requests/policy.h"
#include "coordinator/wlbd/rules/crashes.h"
#include "coordinator/wlbd/rules/decision.h"
#include "coordinator/wlbd/slurm/nodes.h"
#include "coordinator/wlbd/slurm/slurm_ask.h"
#include "coordinator/wlbd/wlbd.h"

static const double wait_s = 0.2;

/* One question, from the request to the reply. */
struct question {
	struct wlbd_call *call;
	const char *attempt_id; /* these point into call->body */
	const json_t *nodes;
	const json_t *policy;
	const char *previous_id; /* NULL: this is the launcher's first */
	const char *previous_step;
	int64_t previous_exit_code;
	struct wlbd_first_exit previous_first;
	int64_t tasks_per_node;
	struct wlb_policy layout_policy;
	int64_t min_nodes;
	int64_t spares;
	json_t *history;    /* what PostgreSQL knows of the run */
	bool history_lacks; /* something of this run was still in the outbox when it was read */
	struct wlbd_offer *offers;
	int offer_count;
	int64_t program_step; /* crashes.h */
	int probes;           /* under way */
	bool job_known;
	struct wlb_slurm_job job; /* as Slurm knows it */
};

struct probe {
	struct question *question;
	int offer;
};

static void question_free(struct question *q)
{
	json_decref(q->history);
	free(q->offers);
	free(q);
}

static void fail(struct question *q, int status, const char *message)
{
	wlbd_call_fail(q->call, status, "%s", message);
	question_free(q);
}

static void finish(struct question *q, json_t *reply)
{
	wlbd_outdated_tell(q->call, reply);
	wlbd_call_reply(q->call, 200, reply);
	question_free(q);
}

/* Whether wlbd ends, so that the question was answered now. */
static bool is_stopping(struct question *q)
{
	bool stopping = q->call->wlbd->stopping;
	if (stopping)
		fail(q, 503, "wlbd is stopping; try again");
	return stopping;
}

static void wait_more(struct question *q, const char *why)
{
	finish(q, json_pack("{s:s, s:f, s:s}", "decision", "wait", "retry_after_s", wait_s, "reason", why));
}

/* ---- 1: the body ----------------------------------------------------------------------------------- */

static int read_policy(struct question *q, struct wlb_error *error)
{
	const char *layout = "auto";
	if (q->policy != NULL &&
	    (wlbd_policy_check(q->policy, error) != 0 ||
	     wlbd_field_text(q->policy, "layout", WLBD_OPTIONAL, WLBD_NAME_MOST, &layout, error) != 0 ||
	     wlbd_field_integer(q->policy, "min_nodes", WLBD_OPTIONAL, 0, WLBD_NODES_MOST, &q->min_nodes, error) != 0 ||
	     wlbd_field_integer(q->policy, "spares", WLBD_OPTIONAL, 0, WLBD_NODES_MOST, &q->spares, error) != 0))
		return -1;
	return wlb_policy_parse(layout, &q->layout_policy, error);
}

static int read_previous(struct question *q, struct wlb_error *error)
{
	const json_t *previous = NULL;
	if (wlbd_field_object(q->call->body, "previous", WLBD_OPTIONAL, &previous, error) != 0)
		return -1;
	if (previous == NULL)
		return 0;
	if (wlbd_field_uuid(previous, "attempt_id", &q->previous_id, error) != 0 ||
	    wlbd_field_integer(previous, "exit_code", WLBD_REQUIRED, -255, 255, &q->previous_exit_code, error) != 0 ||
	    wlbd_field_text(previous, "step_id", WLBD_OPTIONAL, 31, &q->previous_step, error) != 0 ||
	    wlbd_first_exit_read(previous, &q->previous_first, error) != 0)
		return wlb_fail_in(error, "previous");
	/* Empty: the step was over before its launcher had learnt its number. */
	if (q->previous_step != NULL && q->previous_step[0] == '\0')
		q->previous_step = NULL;
	if (q->previous_step != NULL && wlbd_check_step_id(q->call->run, q->previous_step, error) != 0)
		return wlb_fail_in(error, "previous");
	return 0;
}

static int read_question(struct question *q, struct wlb_error *error)
{
	const json_t *body = q->call->body;
	q->tasks_per_node = 1;
	q->previous_exit_code = WLBD_EXIT_UNKNOWN;
	if (wlbd_field_uuid(body, "attempt_id", &q->attempt_id, error) != 0 ||
	    wlbd_field_names(body, "nodes", WLBD_REQUIRED, WLBD_NODES_MOST, &q->nodes, error) != 0 ||
	    wlbd_field_integer(body, "tasks_per_node", WLBD_OPTIONAL, 1, 4096, &q->tasks_per_node, error) != 0 ||
	    wlbd_field_object(body, "policy", WLBD_OPTIONAL, &q->policy, error) != 0)
		return -1;
	return read_policy(q, error) == 0 ? read_previous(q, error) : -1;
}

/* ---- 6: the answer --------------------------------------------------------------------------------- */

/* Whatever still runs of older attempts must not go on beside the new one. */
static void supersede(struct wlbd *wlbd, const struct wlbd_attempt *newest)
{
	struct wlbd_attempt *attempt;
	TAILQ_FOREACH(attempt, &wlbd->attempts->list, link)
	if (attempt->run_pk == newest->run_pk && attempt->number < newest->number)
		wlbd_verdict_supersede(attempt, newest->number);
}

static void on_started(void *context, const struct wlbd_db_result *result)
{
	struct question *q = context;
	if (result->status != WLBD_DB_OK) {
		fail(q, result->http_status, result->message);
		return;
	}
	json_t *stored = json_loads(result->value, 0, NULL);
	struct wlbd_attempt *attempt = wlbd_attempts_put(q->call->wlbd, json_object_get(stored, "card"));
	json_t *reply = json_incref(json_object_get(stored, "decision"));
	if (attempt != NULL) {
		wlbd_outdated_note(q->call, attempt);
		if (q->job_known)
			wlbd_attempts_confirm(q->call->wlbd, attempt->run_pk, &q->job);
		supersede(q->call->wlbd, attempt);
		wlbd_log(WLBD_LOG_INFO, "run %s: attempt %lld on %d nodes: %s", attempt->run,
		         (long long)attempt->number, attempt->nodes.started_on.count,
		         json_string_value(json_object_get(reply, "reason")));
		q->call->wlbd->counters.attempts_started++;
	}
	json_decref(stored);
	finish(q, reply);
}

static int64_t run_pk(const struct question *q)
{
	return json_integer_value(json_object_get(q->history, "run_pk"));
}

static json_t *names_of(const struct question *q, const int *use, int count)
{
	json_t *names = json_array();
	for (int i = 0; i < count; i++)
		json_array_append_new(names, json_string(q->offers[use[i]].name));
	return names;
}

static void start(struct question *q, const struct wlbd_decision *decision)
{
	const struct wlb_layout *layout = &decision->layout;
	struct wlbd_params params = {0};
	json_t *reply = json_pack("{s:s, s:o, s:I, s:{s:i, s:i, s:i, s:i}, s:o, s:O, s:s}", "decision", "start",
	                          "nodes", names_of(q, decision->use, decision->use_count), "tasks_per_node",
	                          (json_int_t)q->tasks_per_node, "layout", "tp", layout->tp, "cp", layout->cp, "pp",
	                          layout->pp, "dp", layout->dp, "spares",
	                          names_of(q, decision->use + decision->use_count, decision->spare_count), "checkpoint",
	                          json_object_get(q->history, "checkpoint"), "reason", decision->reason);
	char *text = json_dumps(reply, JSON_COMPACT);
	char *policy = wlbd_policy_text(q->policy);
	json_decref(reply);
	wlbd_params_add_integer(&params, run_pk(q));
	wlbd_params_add_text(&params, q->attempt_id);
	wlbd_params_add_text(&params, text);
	wlbd_params_add_text(&params, policy != NULL ? policy : "{}");
	wlbd_db_call(q->call->wlbd->writes, "select wlb_attempt_start($1, $2, $3::jsonb, $4::jsonb)", &params,
	             on_started, q);
	free(text);
	free(policy);
}

static void stop(struct question *q, const char *state, const char *reason)
{
	struct wlbd_params params = {0};
	wlbd_params_add_integer(&params, run_pk(q));
	wlbd_params_add_text(&params, state);
	wlbd_params_add_text(&params, reason);
	wlbd_log(WLBD_LOG_INFO, "run %s: %s: %s", q->call->run, state, reason);
	wlbd_outbox_put(q->call->wlbd->outbox, run_pk(q), "select wlb_run_end($1, $2, $3, 'coordinator')", &params);
	finish(q, json_pack("{s:s, s:s, s:s}", "decision", "stop", "state", state, "reason", reason));
}

static int history_number(const struct question *q, const char *name)
{
	return (int)json_integer_value(json_object_get(q->history, name));
}

static void decide(struct question *q, bool judging)
{
	struct wlbd_decision decision;
	struct wlbd_decision_facts facts = {
		.nodes = q->offers,
		.node_count = q->offer_count,
		.tasks_per_node = (int)q->tasks_per_node,
		.policy = q->layout_policy,
		.min_nodes = (int)q->min_nodes,
		.spares = (int)q->spares,
		.first_total = history_number(q, "first_total"),
		.attempts_without_progress = history_number(q, "attempts_without_progress"),
		.program_step = q->program_step,
		.previous_exit_code = (int)q->previous_exit_code,
		.judging = judging,
	};
	if (wlbd_decide(&facts, &decision) != 0) {
		fail(q, 503, "out of memory; try again");
		return;
	}
	switch (decision.verb) {
	case WLBD_START:
		start(q, &decision);
		break;
	case WLBD_WAIT:
		wait_more(q, decision.reason);
		break;
	case WLBD_STOP_FAILED:
		stop(q, "failed", decision.reason);
		break;
	case WLBD_STOP_OUT_OF_NODES:
		stop(q, "out_of_nodes", decision.reason);
		break;
	}
	wlbd_decision_free(&decision);
}

/* ---- 5: the previous attempt ------------------------------------------------------------------------- */

static void note_exit(struct question *q, struct wlbd_attempt *previous)
{
	struct wlbd_params params = {0};
	if (previous->is_exit_recorded)
		return;
	previous->is_exit_recorded = true;
	wlbd_params_add_integer(&params, previous->attempt_pk);
	wlbd_params_add_integer(&params, q->previous_exit_code);
	wlbd_params_add_text(&params, q->previous_step);
	wlbd_params_add_seconds(&params, wlb_clock_unix_s());
	wlbd_outbox_put(q->call->wlbd->outbox, previous->run_pk,
	                "select wlb_attempt_exited($1, $2::integer, $3, to_timestamp($4::float8))", &params);
}

/* Dead nodes are symptoms of what broke it; told before it is called over, so that they are judged together. */
static bool judge_previous(struct question *q)
{
	struct wlbd *wlbd = q->call->wlbd;
	struct wlbd_attempt *previous =
		q->previous_id != NULL ? wlbd_attempts_find(wlbd->attempts, q->previous_id) : NULL;
	if (previous == NULL || previous->run_pk != json_integer_value(json_object_get(q->history, "run_pk")))
		return false;
	for (int i = 0; i < q->offer_count && !wlbd_attempt_has_ended(&previous->incident.life); i++)
		if (q->offers[i].silent && wlbd_attempt_nodes_have(&previous->nodes, q->offers[i].name))
			wlbd_symptom_node(previous, q->offers[i].name);
	wlbd_symptom_step_ended(previous, (int)q->previous_exit_code, &q->previous_first);
	note_exit(q, previous);
	return wlbd_verdict_is_pending(previous);
}

/* ---- 4: do the nodes answer? -------------------------------------------------------------------------- */

static void probed(struct question *q)
{
	if (--q->probes > 0)
		return;
	if (is_stopping(q))
		return;
	bool judging = judge_previous(q);
	/* What was on its way to the database is not in the history that was read: ask again. */
	decide(q, judging || q->history_lacks || wlbd_outbox_holds(q->call->wlbd->outbox, run_pk(q)));
}

static void on_probed(void *context, bool alive)
{
	struct probe *probe = context;
	struct question *q = probe->question;
	q->offers[probe->offer].silent = !alive;
	free(probe);
	probed(q);
}

static void probe_nodes(void *context, const struct wlb_error *error)
{
	struct question *q = context;
	if (is_stopping(q))
		return;
	(void)error;   /* the old table is better than none */
	q->probes = 1; /* ours, so that the last answer is not the first */
	for (int i = 0; i < q->offer_count; i++) {
		const struct wlbd_node *node = wlbd_nodes_find(q->call->wlbd->nodes, q->offers[i].name);
		if (node == NULL)
			continue; /* nothing is known for it or against it */
		struct probe *probe = calloc(1, sizeof(*probe));
		q->offers[i].down = q->offers[i].down || node->down;
		if (probe == NULL)
			continue;
		*probe = (struct probe){.question = q, .offer = i};
		q->probes++;
		wlbd_node_probe(q->call->wlbd->node_probes, q->offers[i].name, q->call->uid, on_probed, probe);
	}
	probed(q);
}

/* ---- 3: which nodes does the job have? ---------------------------------------------------------------- */

static bool is_in(const char *name, char *const *names, int count)
{
	for (int i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

/* A node that died and came back is up again, but no longer the job's. */
static void leave_out_lost(struct question *q, const struct wlb_slurm_job *job)
{
	char **names;
	int count;
	if (job->nodes[0] == '\0' || wlb_hostlist_expand(job->nodes, &names, &count, NULL) != 0)
		return;
	for (int i = 0; i < q->offer_count; i++)
		q->offers[i].down = q->offers[i].down || !is_in(q->offers[i].name, names, count);
	wlb_strings_free(names, count);
}

static void on_job(void *context, const struct wlbd_job_facts *facts)
{
	struct question *q = context;
	uid_t owner = (uid_t)json_integer_value(json_object_get(q->history, "uid"));
	if (is_stopping(q))
		return;
	if (facts->found == 1 && facts->job.uid != owner) {
		wlbd_call_fail(q->call, 403, "job %u belongs to %s", facts->job.job_id, facts->user);
		question_free(q);
		return;
	}
	if (facts->found == 1 && !facts->job.running) {
		/* Slurm takes it back; should it begin again, its new launcher will ask. */
		wait_more(q, "the job is not running");
		return;
	}
	if (facts->found == 1) {
		q->job_known = true;
		q->job = facts->job;
		leave_out_lost(q, &facts->job);
		if (!json_is_true(json_object_get(q->history, "confirmed")))
			wlbd_run_confirm(q->call->wlbd, json_integer_value(json_object_get(q->history, "run_pk")),
			                 &facts->job);
	}
	wlbd_nodes_refresh(q->call->wlbd, probe_nodes, q);
}

/* Returns how many; the newest first. */
static int read_crashes(const json_t *history, struct wlbd_crash crashes[WLBD_CRASHES_MOST])
{
	const json_t *list = json_object_get(history, "crashes");
	int count = 0;
	for (size_t i = 0; i < json_array_size(list) && count < WLBD_CRASHES_MOST; i++) {
		const json_t *entry = json_array_get(list, i);
		crashes[count++] = (struct wlbd_crash){
			.node = json_string_value(json_object_get(entry, "node")),
			.step = json_integer_value(json_object_get(entry, "step")),
			.age_s = json_number_value(json_object_get(entry, "age_s")),
		};
	}
	return count;
}

static int suspect_nodes(struct question *q)
{
	struct wlbd_crash crashes[WLBD_CRASHES_MOST];
	int count = read_crashes(q->history, crashes);
	struct wlbd_suspect *nodes = calloc((size_t)q->offer_count + 1, sizeof(*nodes));
	if (nodes == NULL)
		return -1;
	for (int i = 0; i < q->offer_count; i++)
		nodes[i] = (struct wlbd_suspect){.node = q->offers[i].name, .losses = q->offers[i].losses};
	wlbd_crashes_suspect(crashes, count, nodes, q->offer_count);
	for (int i = 0; i < q->offer_count; i++)
		q->offers[i].suspected = nodes[i].suspected;
	q->program_step = wlbd_crashes_program_step(crashes, count);
	free(nodes);
	return 0;
}

static int fill_offers(struct question *q)
{
	const json_t *losses = json_object_get(q->history, "node_losses");
	q->offer_count = (int)json_array_size(q->nodes);
	q->offers = calloc((size_t)q->offer_count + 1, sizeof(*q->offers));
	if (q->offers == NULL)
		return -1;
	for (int i = 0; i < q->offer_count; i++) {
		q->offers[i].name = json_string_value(json_array_get(q->nodes, (size_t)i));
		q->offers[i].losses = (int)json_integer_value(json_object_get(losses, q->offers[i].name));
	}
	return suspect_nodes(q);
}

/* ---- 2: what is known of the run? ------------------------------------------------------------------------ */

/* Slurm has requeued the job and started it again, and this launcher has not been killed yet. */
static bool is_replaced(const struct question *q)
{
	const char *newest = json_string_value(json_object_get(q->history, "newest"));
	if (q->previous_id == NULL)
		return false;
	return json_is_true(json_object_get(q->history, "requeued")) ||
	       (newest != NULL && strcasecmp(newest, q->previous_id) != 0 && strcasecmp(newest, q->attempt_id) != 0);
}

static void on_history(void *context, const struct wlbd_db_result *result)
{
	struct question *q = context;
	if (result->status != WLBD_DB_OK) {
		fail(q, result->http_status, result->message);
		return;
	}
	q->history = json_loads(result->value, 0, NULL);
	q->history_lacks = wlbd_outbox_holds(q->call->wlbd->outbox, run_pk(q));
	const json_t *stored = json_object_get(q->history, "decision");
	uid_t owner = (uid_t)json_integer_value(json_object_get(q->history, "uid"));
	if (owner != q->call->uid && !wlbd_call_privileged(q->call)) {
		fail(q, 403, "the run belongs to another user");
	} else if (json_is_true(json_object_get(q->history, "closed"))) {
		wlbd_call_fail(q->call, 409, "run %s has ended: %s; a new job or wlb run begins a new one",
		               q->call->run, json_string_value(json_object_get(q->history, "state")));
		question_free(q);
	} else if (is_replaced(q)) {
		wlbd_call_fail(q->call, 409, "attempt %s is not the newest of run %s: another wlb run goes on with it",
		               q->previous_id, q->call->run);
		question_free(q);
	} else if (json_is_object(stored)) {
		finish(q, json_deep_copy(stored)); /* asked before: the reply got lost */
	} else if (fill_offers(q) != 0) {
		fail(q, 503, "out of memory; try again");
	} else {
		wlbd_slurm_job(q->call->wlbd, (uint32_t)history_number(q, "job_id"), q->call->uid, on_job, q);
	}
}

void wlbd_post_attempt(struct wlbd_call *call)
{
	struct wlb_error error = {0};
	struct question *q = calloc(1, sizeof(*q));
	if (q == NULL) {
		wlbd_call_fail_memory(call);
		return;
	}
	q->call = call;
	if (read_question(q, &error) != 0) {
		fail(q, 400, error.message);
		return;
	}
	struct wlbd_params params = {0};
	wlbd_params_add_text(&params, call->run);
	wlbd_params_add_text(&params, q->attempt_id);
	wlbd_params_add_integer(&params, call->uid);
	wlbd_params_add_boolean(&params, wlbd_call_privileged(call));
	wlbd_db_call(call->wlbd->writes, "select wlb_run_history($1, $2, $3, $4)", &params, on_history, q);
}

/*
 * POST /v1/runs/RUN/attempts. Its stages, in the order of this file: read the body, ask the database for the run's
 * history, ask Slurm for the job, probe the nodes, have liveness judge what ended the previous attempt, decide by
 * decision.h, store and reply. Each stage ends with the question that the next one waits for, or with the reply.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/json_text.h"
#include "common/on_fault.h"
#include "coordinator/wlbd/api/attempts/attempt_body.h"
#include "coordinator/wlbd/api/attempts/candidate_nodes.h"
#include "coordinator/wlbd/api/handlers.h"
#include "coordinator/wlbd/api/policy.h"
#include "coordinator/wlbd/api/run_change.h"
#include "coordinator/wlbd/attempts/launchers.h"
#include "coordinator/wlbd/attempts/names.h"
#include "coordinator/wlbd/database/db_pool.h"
#include "coordinator/wlbd/database/outbox.h"
#include "coordinator/wlbd/http/fields.h"
#include "coordinator/wlbd/http/question_share.h"
#include "coordinator/wlbd/http/reply.h"
#include "coordinator/wlbd/incident/attempt_end.h"
#include "coordinator/wlbd/incident/faults.h"
#include "coordinator/wlbd/incident/symptoms.h"
#include "coordinator/wlbd/jobs/job_record.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/nodes/node_probe.h"
#include "coordinator/wlbd/slurm/nodes.h"
#include "coordinator/wlbd/slurm/slurm_ask.h"
#include "coordinator/wlbd/wlbd.h"

struct attempt_request {
	struct wlbd_call *call;
	struct wlbd_attempt_body body;
	json_t *history;            /* what PostgreSQL knows of the run */
	bool is_history_incomplete; /* the outbox held something of this run when it was read */
	int64_t run_pk;
	struct wlbd_candidate_nodes candidates;
	int due_probes;
	bool job_known;
	struct wlb_slurm_job job; /* as Slurm knows it */
	bool job_nodes_known;     /* Slurm has said which nodes it has: others are marked as down */
	bool switches_known;
};

static void on_history(void *context, const struct wlbd_db_result *result);
static void on_job(void *context, const struct wlbd_job_facts *facts);
static void on_nodes(void *context, const struct wlb_error *error);
static void on_all_probed(struct attempt_request *request);
static void decide(struct attempt_request *request, bool is_judging);
static void on_started(void *context, const struct wlbd_db_result *result);

/* ---- every stage can end the request --------------------------------------------------------------- */

static void request_free(struct attempt_request *request)
{
	json_decref(request->history);
	wlbd_candidate_nodes_free(&request->candidates);
	wlb_slurm_job_free(&request->job);
	free(request);
}

static void fail(struct attempt_request *request, int status, const char *message)
{
	wlbd_call_fail(request->call, status, "%s", message);
	request_free(request);
}

static void fail_memory(struct attempt_request *request)
{
	wlbd_call_fail_memory(request->call);
	request_free(request);
}

static void finish(struct attempt_request *request, json_t *reply)
{
	wlbd_call_reply(request->call, 200, reply);
	request_free(request);
}

/* The launcher asks again. */
static void reply_wait(struct attempt_request *request, double retry_after_s, const char *reason)
{
	finish(request, json_pack("{s:s, s:f, s:o}", "decision", "wait", "retry_after_s", retry_after_s, "reason",
	                          wlb_json_text(reason)));
}

/* Returns whether wlbd is stopping; the request is answered then. */
static bool is_stopping(struct attempt_request *request)
{
	if (!request->call->wlbd->stopping)
		return false;
	wlbd_call_fail_stopping(request->call);
	request_free(request);
	return true;
}

/* ---- 1: the body ----------------------------------------------------------------------------------- */

void wlbd_post_attempt(struct wlbd_call *call)
{
	struct wlb_error error = {0};
	struct wlbd_params params = {0};
	struct attempt_request *request = calloc(1, sizeof(*request));
	if (request == NULL) {
		wlbd_call_fail_memory(call);
		return;
	}
	request->call = call;
	if (wlbd_attempt_body_read(call->run, call->body, &request->body, &error) != 0) {
		fail(request, 400, error.message);
		return;
	}
	if (wlbd_question_share_take(call) != 0) {
		request_free(request);
		return;
	}
	wlbd_params_add_text(&params, call->run);
	wlbd_params_add_text(&params, request->body.attempt_id);
	wlbd_params_add_text(&params, request->body.previous.attempt_id);
	wlbd_params_add_integer(&params, call->uid);
	wlbd_params_add_boolean(&params, wlbd_call_privileged(call));
	wlbd_db_pool_call(call->wlbd->questions, call->uid, 0, "select wlb_run_past($1, $2, $3, $4, $5)", &params,
	                  on_history, request);
}

/* ---- 2: the history of the run --------------------------------------------------------------------- */

static int history_integer(const struct attempt_request *request, const char *name)
{
	return (int)json_integer_value(json_object_get(request->history, name));
}

static uid_t owner_of(const struct attempt_request *request)
{
	return (uid_t)json_integer_value(json_object_get(request->history, "uid"));
}

/* Slurm has requeued the job and started it again, and the launcher from before was not killed yet. */
static bool is_replaced(const struct attempt_request *request)
{
	const char *newer = json_string_value(json_object_get(request->history, "newer"));
	return json_is_true(json_object_get(request->history, "requeued")) ||
	       (newer != NULL && strcasecmp(newer, request->body.attempt_id) != 0);
}

/* Returns whether the history forbids an attempt of this launcher; the call is answered then. */
static bool is_refused(const struct attempt_request *request)
{
	struct wlbd_call *call = request->call;
	if (owner_of(request) != call->uid && !wlbd_call_privileged(call))
		wlbd_call_fail(call, 403, "the run belongs to another user");
	else if (json_is_true(json_object_get(request->history, "closed")))
		wlbd_call_fail(call, 409, "run %s has ended: %s; a new job or wlb run begins a new one", call->run,
		               json_string_value(json_object_get(request->history, "state")));
	else if (is_replaced(request))
		wlbd_call_fail(call, 409, "attempt %s is not the newest of run %s: another wlb run continues it",
		               request->body.previous.attempt_id, call->run);
	else
		return false;
	return true;
}

/* Returns whether the user's attempts are as many as are watched; the call is answered then. */
static bool has_too_many_attempts(const struct attempt_request *request)
{
	struct wlbd_call *call = request->call;
	if (wlbd_call_privileged(call) || !wlbd_attempts_full(call->wlbd->attempts, call->uid, false))
		return false;
	wlbd_call_fail(call, 503, "attempt %s: its user has the most attempts that can be watched; try again later",
	               request->body.attempt_id);
	return true;
}

/* Returns whether the request names more nodes than Slurm has; the call is answered then. Until Slurm has listed its
 * nodes, a job of more than WLBD_CLAIMED_NODES_MAX waits. */
static bool has_too_many_nodes(const struct attempt_request *request)
{
	struct wlbd_call *call = request->call;
	int count = (int)json_array_size(request->body.nodes), known = wlbd_nodes_count(call->wlbd->nodes);
	if (count <= WLBD_CLAIMED_NODES_MAX || count <= known)
		return false;
	if (known == 0)
		wlbd_call_fail(call, 503, "field 'nodes': %d names, and Slurm has not listed its nodes yet; try again",
		               count);
	else
		wlbd_call_fail(call, 400,
		               "field 'nodes': %d names; the cluster has %d nodes, and a request at most %d, or as "
		               "many as the cluster has: name the nodes of the job",
		               count, known, WLBD_CLAIMED_NODES_MAX);
	return true;
}

/* A setting that cannot be read, of a later release, is as wlbd.conf says. */
static bool excludes_crashed(const struct attempt_request *request)
{
	struct wlb_on_fault on_fault = request->call->wlbd->config.on_fault;
	const char *text = json_string_value(json_object_get(request->history, "on_fault"));
	if (text != NULL)
		wlb_on_fault_parse(text, &on_fault, NULL);
	return on_fault.crash == WLB_FAULT_EVICT;
}

static struct wlbd_nodes_rules rules_of(const struct attempt_request *request)
{
	return (struct wlbd_nodes_rules){.excludes_crashed = excludes_crashed(request),
	                                 .avoids_nodes = request->call->wlbd->config.avoid_nodes};
}

static void on_history(void *context, const struct wlbd_db_result *result)
{
	struct attempt_request *request = context;
	struct wlbd *wlbd = request->call->wlbd;
	if (result->status != WLBD_DB_OK) {
		fail(request, result->http_status, result->message);
		return;
	}
	request->history = json_loads(result->value, 0, NULL);
	request->run_pk = json_integer_value(json_object_get(request->history, "run_pk"));
	request->is_history_incomplete = wlbd_outbox_holds(wlbd->outbox, request->run_pk);
	const json_t *stored = json_object_get(request->history, "decision");
	if (is_refused(request) || has_too_many_nodes(request)) {
		request_free(request);
		return;
	}
	wlbd_launchers_asked(wlbd->launchers, (uint32_t)history_integer(request, "job_id"), owner_of(request));
	if (json_is_object(stored)) /* the launcher asks again, because the first reply got lost */
		finish(request, json_deep_copy(stored));
	else if (has_too_many_attempts(request))
		request_free(request);
	else if (wlbd_candidate_nodes_make(request->body.nodes, request->history, rules_of(request),
	                                   &request->candidates) != 0)
		fail_memory(request);
	else
		wlbd_slurm_job(wlbd, (uint32_t)history_integer(request, "job_id"), request->call->uid, on_job, request);
}

/* ---- 3: the job and its nodes ------------------------------------------------------------------------ */

/* A node that died and came back is up again, but Slurm has taken it from the job. */
static void mark_nodes_without_job(struct attempt_request *request, const struct wlb_slurm_job *job)
{
	struct wlbd_names names = {0};
	if (job->nodes[0] == '\0' || wlbd_names_from_hostlist(&names, job->nodes) != 0)
		return;
	for (int i = 0; i < request->candidates.count; i++) {
		struct wlbd_candidate_node *node = &request->candidates.list[i];
		node->down = node->down || wlbd_names_find(&names, node->name) < 0;
	}
	request->job_nodes_known = true;
	wlbd_names_free(&names);
}

/* A job that Slurm knew and has forgotten ended some time ago: nodes that its client names now would be anybody's. */
static void refuse_forgotten(struct attempt_request *request)
{
	wlbd_call_fail(request->call, 409, "run %s: Slurm no longer knows job %d, which has ended; submit a new job",
	               request->call->run, history_integer(request, "job_id"));
	request_free(request);
}

static void on_job(void *context, const struct wlbd_job_facts *facts)
{
	struct attempt_request *request = context;
	struct wlbd *wlbd = request->call->wlbd;
	if (is_stopping(request))
		return;
	if (facts->found == 1 && facts->job.uid != owner_of(request)) {
		wlbd_call_fail(request->call, 403, "job %u belongs to %s", facts->job.job_id, facts->user);
		request_free(request);
		return;
	}
	bool confirmed = json_is_true(json_object_get(request->history, "confirmed"));
	if (facts->found == 0 && confirmed) {
		refuse_forgotten(request);
		return;
	}
	if (facts->found == 1 && facts->job.finished && !facts->job.batch) {
		/* The command of salloc outlives its job. */
		char reason[128];
		snprintf(reason, sizeof(reason), "job %u ended %s", facts->job.job_id, facts->job.state);
		finish(request,
		       json_pack("{s:s, s:s, s:s}", "decision", "stop", "state", "cancelled", "reason", reason));
		return;
	}
	if (facts->found == 1 && !facts->job.running) {
		/* Slurm ends or requeues it; if it starts again, its new launcher asks. */
		reply_wait(request, WLBD_RETRY_SOON_S, "the job is not running");
		return;
	}
	if (facts->found == 1) {
		request->job_known = wlb_slurm_job_copy(&request->job, &facts->job, NULL) == 0;
		mark_nodes_without_job(request, &facts->job);
		if (!confirmed)
			wlbd_run_confirm(wlbd, request->run_pk, &facts->job);
	}
	wlbd_nodes_refresh(wlbd, request->call->uid, on_nodes, request);
}

/* ---- 4: whether the nodes answer --------------------------------------------------------------------- */

struct candidate_probe {
	struct attempt_request *request;
	int candidate;
};

static void note_probe(struct attempt_request *request)
{
	if (--request->due_probes == 0 && !is_stopping(request))
		on_all_probed(request);
}

static void on_probed(void *context, bool alive)
{
	struct candidate_probe *probe = context;
	struct attempt_request *request = probe->request;
	request->candidates.list[probe->candidate].silent = !alive;
	free(probe);
	note_probe(request);
}

static void order_candidates(struct attempt_request *request)
{
	const struct wlb_topology_file *topology = wlbd_nodes_topology(request->call->wlbd->nodes);
	struct wlb_error error;
	if (topology == NULL)
		return;
	request->switches_known = wlbd_candidate_nodes_order(&request->candidates, topology, &error) == 0;
	if (!request->switches_known)
		wlbd_log(WLBD_LOG_WARNING, "run %s: its nodes keep their order: %s", request->call->run, error.message);
}

static void on_nodes(void *context, const struct wlb_error *error)
{
	struct attempt_request *request = context;
	struct wlbd *wlbd = request->call->wlbd;
	if (is_stopping(request))
		return;
	order_candidates(request);
	(void)error;             /* the old table is better than none */
	request->due_probes = 1; /* this function: probes may answer at once */
	for (int i = 0; i < request->candidates.count; i++) {
		struct wlbd_candidate_node *candidate = &request->candidates.list[i];
		const struct wlbd_node *node = wlbd_nodes_find(wlbd->nodes, candidate->name);
		if (node == NULL)
			continue; /* nothing is known about it */
		struct candidate_probe *probe = calloc(1, sizeof(*probe));
		candidate->down = candidate->down || node->down;
		if (probe == NULL)
			continue;
		*probe = (struct candidate_probe){.request = request, .candidate = i};
		request->due_probes++;
		wlbd_node_probe(wlbd->node_probes, candidate->name, request->call->uid, on_probed, probe);
	}
	note_probe(request);
}

/* ---- 5: the previous attempt ------------------------------------------------------------------------- */

/* Returns whether what ended it is still to be judged. Nodes that did not answer are symptoms of that; they are
 * raised before its end, so that they are judged together with it. */
static bool is_previous_judged_later(struct attempt_request *request)
{
	const struct wlbd_previous_attempt *previous_body = &request->body.previous;
	struct wlbd_attempt *previous = NULL;
	if (previous_body->attempt_id != NULL)
		previous = wlbd_attempts_find(request->call->wlbd->attempts, previous_body->attempt_id);
	if (previous == NULL || previous->run_pk != request->run_pk)
		return false;
	for (int i = 0; i < request->candidates.count; i++) {
		const struct wlbd_candidate_node *node = &request->candidates.list[i];
		if (!node->silent || !wlbd_attempt_nodes_have(&previous->nodes, node->name))
			continue;
		if (wlbd_attempt_has_ended(&previous->incident.life))
			wlbd_symptom_node_silent_after_end(previous, node->name);
		else
			wlbd_symptom_node_silent(previous, node->name);
	}
	wlbd_symptom_step_ended(previous, (int)previous_body->exit_code, &previous_body->first_exit);
	wlbd_fault_record_exited(previous, (int)previous_body->exit_code, previous_body->step_id);
	return wlbd_attempt_end_is_pending(previous);
}

static void on_all_probed(struct attempt_request *request)
{
	bool is_judging = is_previous_judged_later(request);
	/* What the outbox holds is not in the history that was read. */
	decide(request, is_judging || request->is_history_incomplete ||
	                        wlbd_outbox_holds(request->call->wlbd->outbox, request->run_pk));
}

/* ---- 6: the decision ----------------------------------------------------------------------------------- */

static json_t *names_of(const struct attempt_request *request, const int *use, int count)
{
	json_t *names = json_array();
	for (int i = 0; i < count; i++)
		json_array_append_new(names, json_string(request->candidates.list[use[i]].name));
	return names;
}

/* A client may name what it likes: only nodes of Slurm, where these are known, are stored with the decision. */
static json_t *missing_names(const struct attempt_request *request)
{
	const struct wlbd_nodes *nodes = request->call->wlbd->nodes;
	bool are_known = wlbd_nodes_count(nodes) > 0;
	json_t *names = json_array();
	for (int i = 0; i < request->candidates.count; i++) {
		const struct wlbd_candidate_node *node = &request->candidates.list[i];
		if (wlbd_node_may_return(node) && (!are_known || wlbd_nodes_find(nodes, node->name) != NULL))
			json_array_append_new(names, json_string(node->name));
	}
	return names;
}

/* Returns the nodes that work and are excluded for what ranks did on them: the launcher checks them. A node that has
 * passed before is not checked again. Returns NULL if out of memory. */
static json_t *suspect_names(const struct attempt_request *request, const struct wlbd_decision *decision)
{
	const json_t *given_back = json_object_get(request->history, "given_back");
	bool *used = calloc((size_t)request->candidates.count + 1, sizeof(*used));
	json_t *names = used != NULL ? json_array() : NULL;
	for (int i = 0; used != NULL && i < decision->use_count + decision->spare_count; i++)
		used[decision->use[i]] = true;
	for (int i = 0; names != NULL && i < request->candidates.count; i++) {
		const struct wlbd_candidate_node *node = &request->candidates.list[i];
		if (wlbd_node_may_pass(node) && !used[i] && json_object_get(given_back, node->name) == NULL)
			json_array_append_new(names, json_string(node->name));
	}
	free(used);
	return names;
}

static void start(struct attempt_request *request, const struct wlbd_decision *decision)
{
	const struct wlb_layout *layout = &decision->layout;
	struct wlbd_params params = {0};
	json_t *reply =
		json_pack("{s:s, s:o, s:I, s:{s:i, s:i, s:i, s:i}, s:o, s:O, s:o}", "decision", "start", "nodes",
	                  names_of(request, decision->use, decision->use_count), "tasks_per_node",
	                  (json_int_t)request->body.tasks_per_node, "layout", "tp", layout->tp, "cp", layout->cp, "pp",
	                  layout->pp, "dp", layout->dp, "spares",
	                  names_of(request, decision->use + decision->use_count, decision->spare_count), "checkpoint",
	                  json_object_get(request->history, "checkpoint"), "reason", wlb_json_text(decision->reason));
	json_object_set_new(reply, "of_job", json_boolean(request->job_nodes_known));
	json_object_set_new(reply, "missing", missing_names(request));
	json_object_set_new(reply, "suspects", suspect_names(request, decision));
	if (request->switches_known)
		json_object_set_new(reply, "switches", wlbd_switches_json(&request->candidates, decision));
	json_object_set_new(reply, "gpu_types",
	                    wlbd_gpu_types_json(request->call->wlbd->nodes, &request->candidates, decision));
	char *text = json_dumps(reply, JSON_COMPACT);
	char *policy = wlbd_policy_text(request->body.policy);
	json_decref(reply);
	wlbd_params_add_integer(&params, request->run_pk);
	wlbd_params_add_text(&params, request->body.attempt_id);
	wlbd_params_add_text(&params, text);
	wlbd_params_add_text(&params, policy != NULL ? policy : "{}");
	wlbd_params_add_integer(&params, wlbd_candidate_nodes_held(&request->candidates));
	wlbd_run_change(request->call->wlbd, request->call->uid, wlbd_run_job_id(request->call->run),
	                "select wlb_attempt_start($1, $2, $3::jsonb, $4::jsonb, $5::integer)", &params, on_started,
	                request);
	free(text);
	free(policy);
}

static void stop(struct attempt_request *request, const char *state, const char *reason)
{
	struct wlbd_params params = {0};
	wlbd_params_add_integer(&params, request->run_pk);
	wlbd_params_add_text(&params, state);
	wlbd_params_add_text(&params, reason);
	wlbd_log(WLBD_LOG_INFO, "run %s: %s: %s", request->call->run, state, reason);
	wlbd_outbox_put(request->call->wlbd->outbox, owner_of(request), request->run_pk,
	                "select wlb_run_end($1, $2, $3, 'coordinator')", &params);
	finish(request,
	       json_pack("{s:s, s:s, s:o}", "decision", "stop", "state", state, "reason", wlb_json_text(reason)));
}

/* Returns the nodes of the attempt that the job still has and that answer: other nodes have no part in what happened to
 * the attempt. */
static json_t *reachable_nodes(const struct attempt_request *request, const json_t *of_attempt)
{
	json_t *names = json_array(), *known = json_object();
	size_t k;
	const json_t *name;
	json_array_foreach((json_t *)of_attempt, k, name)
		json_object_set_new(known, json_string_value(name), json_true());
	for (int i = 0; i < request->candidates.count; i++) {
		const struct wlbd_candidate_node *node = &request->candidates.list[i];
		if (!node->down && !node->silent && json_object_get(known, node->name) != NULL)
			json_array_append_new(names, json_string(node->name));
	}
	json_decref(known);
	return names;
}

static bool place_fault(struct attempt_request *request, const json_t *nodes)
{
	char why[WLBD_LINKS_WHY_SIZE];
	struct wlbd_params params = {0};
	const char *node = wlbd_links_body_worst(&request->body.links, nodes, why);
	if (node == NULL)
		return false;
	wlbd_log(WLBD_LOG_WARNING, "run %s: %s", request->call->run, why);
	wlbd_params_add_integer(&params, request->run_pk);
	wlbd_params_add_text(&params, node);
	wlbd_params_add_text(&params, why);
	wlbd_outbox_put(request->call->wlbd->outbox, owner_of(request), request->run_pk,
	                "select wlb_fault_place($1, $2, $3)", &params);
	reply_wait(request, WLBD_RETRY_SOON_S, why);
	return true;
}

/* The newest attempt was ended because ranks on several nodes hung. The launcher is asked which nodes do not reach each
 * other. The node whose link is broken becomes the node of the fault, which the next request finds in the history.
 * Returns whether the request is answered. */
static bool is_link_looked_for(struct attempt_request *request)
{
	const struct wlbd_links_body *links = &request->body.links;
	const json_t *of_attempt = json_object_get(request->history, "unplaced");
	if (!links->can_check || !json_is_array(of_attempt))
		return false;
	json_t *nodes = reachable_nodes(request, of_attempt);
	bool is_answered = false;
	if (links->checked)
		is_answered = place_fault(request, nodes);
	else if (json_array_size(nodes) > 1) {
		finish(request, json_pack("{s:s, s:O, s:s}", "decision", "check_links", "nodes", nodes, "reason",
		                          "ranks on several nodes hung"));
		is_answered = true;
	}
	json_decref(nodes);
	return is_answered;
}

static double since_end_s(const struct attempt_request *request)
{
	const json_t *value = json_object_get(request->history, "since_end_s");
	return json_is_number(value) ? json_number_value(value) : HUGE_VAL;
}

static void decide(struct attempt_request *request, bool is_judging)
{
	if (!is_judging && is_link_looked_for(request))
		return;
	struct wlbd_decision decision;
	struct wlbd_decision_facts facts = {
		.nodes = request->candidates.list,
		.node_count = request->candidates.count,
		.tasks_per_node = (int)request->body.tasks_per_node,
		.policy = request->body.layout,
		.min_nodes = (int)request->body.min_nodes,
		.spares = (int)request->body.spares,
		.first_total = history_integer(request, "first_total"),
		.attempts_without_progress = history_integer(request, "attempts_without_progress"),
		.since_end_s = since_end_s(request),
		.back_off_s = request->call->wlbd->config.back_off_ms / 1e3,
		.program_step = request->candidates.program_step,
		.previous_exit_code = (int)request->body.previous.exit_code,
		.has_worked = json_is_object(json_object_get(request->history, "checkpoint")) ||
	                      json_is_true(json_object_get(request->history, "has_lasted")),
		.judging = is_judging,
	};
	if (wlbd_decide(&facts, &decision) != 0) {
		fail_memory(request);
		return;
	}
	switch (decision.verb) {
	case WLBD_START:
		start(request, &decision);
		break;
	case WLBD_WAIT:
		reply_wait(request, decision.retry_after_s, decision.reason);
		break;
	case WLBD_STOP_FAILED:
		stop(request, "failed", decision.reason);
		break;
	case WLBD_STOP_OUT_OF_NODES:
		stop(request, "out_of_nodes", decision.reason);
		break;
	}
	wlbd_decision_free(&decision);
}

/* ---- 7: the attempt is stored -------------------------------------------------------------------------- */

/* Processes of older attempts that still run are ordered to end. */
static void supersede_older(struct wlbd *wlbd, const struct wlbd_attempt *newest)
{
	struct wlbd_attempt *attempt;
	TAILQ_FOREACH(attempt, &wlbd->attempts->list, link)
	if (attempt->run_pk == newest->run_pk && attempt->number < newest->number)
		wlbd_attempt_end_supersede(attempt, newest->number);
}

static void on_started(void *context, const struct wlbd_db_result *result)
{
	struct attempt_request *request = context;
	struct wlbd *wlbd = request->call->wlbd;
	if (result->status != WLBD_DB_OK) {
		fail(request, result->http_status, result->message);
		return;
	}
	json_t *stored = json_loads(result->value, 0, NULL);
	struct wlbd_attempt *attempt = wlbd_attempts_put(wlbd, json_object_get(stored, "card"));
	json_t *reply = json_incref(json_object_get(stored, "decision"));
	if (attempt != NULL) {
		if (request->job_known)
			wlbd_attempts_confirm(wlbd, attempt->run_pk, &request->job);
		supersede_older(wlbd, attempt);
		wlbd_attempt_end_older(wlbd, attempt);
		wlbd_log(WLBD_LOG_INFO, "run %s: attempt %lld on %d nodes: %s", attempt->run,
		         (long long)attempt->number, attempt->nodes.started_on.count,
		         json_string_value(json_object_get(reply, "reason")));
		wlbd->counters.attempts_started++;
	}
	json_decref(stored);
	finish(request, reply);
}

/*
 * POST /v1/runs/RUN/attempts. Its stages, in the order of this file: read the body, ask the database for the run's
 * history, ask Slurm for the job, probe the nodes, judge what ended the previous attempt, decide by decision.h, store
 * and reply. Each stage ends with the question that the next one waits for, or with the reply.
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
#include "coordinator/wlbd/slurm/slurm_requests.h"
#include "coordinator/wlbd/wlbd.h"

struct next_attempt {
	struct wlbd_request *request;
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
static void on_all_probed(struct next_attempt *next);
static void decide(struct next_attempt *next, bool is_judging);
static void on_started(void *context, const struct wlbd_db_result *result);

/* ---- every stage can end the request --------------------------------------------------------------- */

static void next_attempt_free(struct next_attempt *next)
{
	json_decref(next->history);
	wlbd_candidate_nodes_free(&next->candidates);
	wlb_slurm_job_free(&next->job);
	free(next);
}

static void fail(struct next_attempt *next, int status, const char *message)
{
	wlbd_request_fail(next->request, status, "%s", message);
	next_attempt_free(next);
}

static void fail_memory(struct next_attempt *next)
{
	wlbd_request_fail_memory(next->request);
	next_attempt_free(next);
}

static void finish(struct next_attempt *next, json_t *reply)
{
	wlbd_request_reply(next->request, 200, reply);
	next_attempt_free(next);
}

/* The launcher asks again. */
static void reply_wait(struct next_attempt *next, double retry_after_s, const char *reason)
{
	finish(next, json_pack("{s:s, s:f, s:o}", "decision", "wait", "retry_after_s", retry_after_s, "reason",
	                       wlb_json_text(reason)));
}

/* Returns whether wlbd is stopping; the request is answered then. */
static bool is_stopping(struct next_attempt *next)
{
	if (!next->request->wlbd->stopping)
		return false;
	wlbd_request_fail_stopping(next->request);
	next_attempt_free(next);
	return true;
}

/* ---- 1: the body ----------------------------------------------------------------------------------- */

void wlbd_post_attempt(struct wlbd_request *request)
{
	struct wlb_error error = {0};
	struct wlbd_params params = {0};
	struct next_attempt *next = calloc(1, sizeof(*next));
	if (next == NULL) {
		wlbd_request_fail_memory(request);
		return;
	}
	next->request = request;
	if (wlbd_attempt_body_read(request->run, request->body, &next->body, &error) != 0) {
		fail(next, 400, error.message);
		return;
	}
	if (wlbd_question_share_take(request) != 0) {
		next_attempt_free(next);
		return;
	}
	wlbd_params_add_text(&params, request->run);
	wlbd_params_add_text(&params, next->body.attempt_id);
	wlbd_params_add_text(&params, next->body.previous.attempt_id);
	wlbd_params_add_integer(&params, request->uid);
	wlbd_params_add_boolean(&params, wlbd_request_privileged(request));
	wlbd_db_pool_execute(request->wlbd->questions, request->uid, 0, "select wlb_run_past($1, $2, $3, $4, $5)",
	                     &params, on_history, next);
}

/* ---- 2: the history of the run --------------------------------------------------------------------- */

static int history_integer(const struct next_attempt *next, const char *name)
{
	return (int)json_integer_value(json_object_get(next->history, name));
}

static uid_t owner_of(const struct next_attempt *next)
{
	return (uid_t)json_integer_value(json_object_get(next->history, "uid"));
}

/* Slurm has requeued the job and started it again, and the launcher from before was not killed yet. */
static bool is_replaced(const struct next_attempt *next)
{
	const char *newer = json_string_value(json_object_get(next->history, "newer"));
	return json_is_true(json_object_get(next->history, "requeued")) ||
	       (newer != NULL && strcasecmp(newer, next->body.attempt_id) != 0);
}

/* Returns whether the history forbids an attempt of this launcher; the request is answered then. */
static bool is_refused(const struct next_attempt *next)
{
	struct wlbd_request *request = next->request;
	if (owner_of(next) != request->uid && !wlbd_request_privileged(request))
		wlbd_request_fail(request, 403, "the run belongs to another user");
	else if (json_is_true(json_object_get(next->history, "closed")))
		wlbd_request_fail(request, 409, "run %s has ended: %s; a new job or wlb run begins a new one",
		                  request->run, json_string_value(json_object_get(next->history, "state")));
	else if (is_replaced(next))
		wlbd_request_fail(request, 409, "attempt %s is not the newest of run %s: another wlb run continues it",
		                  next->body.previous.attempt_id, request->run);
	else
		return false;
	return true;
}

/* Returns whether the user's attempts are as many as are watched; the request is answered then. */
static bool has_too_many_attempts(const struct next_attempt *next)
{
	struct wlbd_request *request = next->request;
	if (wlbd_request_privileged(request) || !wlbd_attempts_full(request->wlbd->attempts, request->uid, false))
		return false;
	wlbd_request_fail(request, 503,
	                  "attempt %s: its user has the most attempts that can be watched; try again later",
	                  next->body.attempt_id);
	return true;
}

/* Returns whether the request names more nodes than Slurm has; the request is answered then. Until Slurm has listed its
 * nodes, a job of more than WLBD_CLAIMED_NODES_MAX waits. */
static bool has_too_many_nodes(const struct next_attempt *next)
{
	struct wlbd_request *request = next->request;
	int count = (int)json_array_size(next->body.nodes), known = wlbd_nodes_count(request->wlbd->nodes);
	if (count <= WLBD_CLAIMED_NODES_MAX || count <= known)
		return false;
	if (known == 0)
		wlbd_request_fail(request, 503,
		                  "field 'nodes': %d names, and Slurm has not listed its nodes yet; try again", count);
	else
		wlbd_request_fail(request, 400,
		                  "field 'nodes': %d names; the cluster has %d nodes, and a request at most %d, or as "
		                  "many as the cluster has: name the nodes of the job",
		                  count, known, WLBD_CLAIMED_NODES_MAX);
	return true;
}

/* Where the setting cannot be read, what wlbd.conf says counts. */
static bool excludes_crashed(const struct next_attempt *next)
{
	struct wlb_on_fault on_fault = next->request->wlbd->config.on_fault;
	const char *text = json_string_value(json_object_get(next->history, "on_fault"));
	if (text != NULL)
		wlb_on_fault_parse(text, &on_fault, NULL);
	return on_fault.crash == WLB_FAULT_EVICT;
}

static struct wlbd_nodes_rules rules_of(const struct next_attempt *next)
{
	return (struct wlbd_nodes_rules){.excludes_crashed = excludes_crashed(next),
	                                 .avoids_nodes = next->request->wlbd->config.avoid_nodes};
}

static void on_history(void *context, const struct wlbd_db_result *result)
{
	struct next_attempt *next = context;
	struct wlbd *wlbd = next->request->wlbd;
	if (result->status != WLBD_DB_OK) {
		fail(next, result->http_status, result->message);
		return;
	}
	next->history = json_loads(result->value, 0, NULL);
	next->run_pk = json_integer_value(json_object_get(next->history, "run_pk"));
	next->is_history_incomplete = wlbd_outbox_holds(wlbd->outbox, next->run_pk);
	const json_t *stored = json_object_get(next->history, "decision");
	if (is_refused(next) || has_too_many_nodes(next)) {
		next_attempt_free(next);
		return;
	}
	wlbd_launchers_note_request(wlbd->launchers, (uint32_t)history_integer(next, "job_id"), owner_of(next));
	if (json_is_object(stored)) /* the launcher asks again, because the first reply got lost */
		finish(next, json_deep_copy(stored));
	else if (has_too_many_attempts(next))
		next_attempt_free(next);
	else if (wlbd_candidate_nodes_make(next->body.nodes, next->history, rules_of(next), &next->candidates) != 0)
		fail_memory(next);
	else
		wlbd_slurm_job(wlbd, (uint32_t)history_integer(next, "job_id"), next->request->uid, on_job, next);
}

/* ---- 3: the job and its nodes ------------------------------------------------------------------------ */

/* A node that died and came back is up again, but Slurm has taken it from the job. */
static void mark_nodes_without_job(struct next_attempt *next, const struct wlb_slurm_job *job)
{
	struct wlbd_names names = {0};
	if (job->nodes[0] == '\0' || wlbd_names_from_hostlist(&names, job->nodes) != 0)
		return;
	for (int i = 0; i < next->candidates.count; i++) {
		struct wlbd_candidate_node *node = &next->candidates.list[i];
		node->down = node->down || wlbd_names_find(&names, node->name) < 0;
	}
	next->job_nodes_known = true;
	wlbd_names_free(&names);
}

/* A job that Slurm knew and has forgotten ended some time ago: nodes that its client names now would be anybody's. */
static void refuse_forgotten(struct next_attempt *next)
{
	wlbd_request_fail(next->request, 409, "run %s: Slurm no longer knows job %d, which has ended; submit a new job",
	                  next->request->run, history_integer(next, "job_id"));
	next_attempt_free(next);
}

static void on_job(void *context, const struct wlbd_job_facts *facts)
{
	struct next_attempt *next = context;
	struct wlbd *wlbd = next->request->wlbd;
	if (is_stopping(next))
		return;
	if (facts->found == 1 && facts->job.uid != owner_of(next)) {
		wlbd_request_fail(next->request, 403, "job %u belongs to %s", facts->job.job_id, facts->user);
		next_attempt_free(next);
		return;
	}
	bool confirmed = json_is_true(json_object_get(next->history, "confirmed"));
	if (facts->found == 0 && confirmed) {
		refuse_forgotten(next);
		return;
	}
	if (facts->found == 1 && facts->job.finished && !facts->job.batch) {
		/* The command of salloc outlives its job. */
		char reason[128];
		snprintf(reason, sizeof(reason), "job %u ended %s", facts->job.job_id, facts->job.state);
		finish(next, json_pack("{s:s, s:s, s:s}", "decision", "stop", "state", "cancelled", "reason", reason));
		return;
	}
	if (facts->found == 1 && !facts->job.running) {
		/* Slurm ends or requeues it; if it starts again, its new launcher asks. */
		reply_wait(next, WLBD_RETRY_SOON_S, "the job is not running");
		return;
	}
	if (facts->found == 1) {
		next->job_known = wlb_slurm_job_copy(&next->job, &facts->job, NULL) == 0;
		mark_nodes_without_job(next, &facts->job);
		if (!confirmed)
			wlbd_run_confirm(wlbd, next->run_pk, &facts->job);
	}
	wlbd_nodes_refresh(wlbd, next->request->uid, on_nodes, next);
}

/* ---- 4: whether the nodes answer --------------------------------------------------------------------- */

struct candidate_probe {
	struct next_attempt *next;
	int candidate;
};

static void note_probe(struct next_attempt *next)
{
	if (--next->due_probes == 0 && !is_stopping(next))
		on_all_probed(next);
}

static void on_probed(void *context, bool alive)
{
	struct candidate_probe *probe = context;
	struct next_attempt *next = probe->next;
	next->candidates.list[probe->candidate].silent = !alive;
	free(probe);
	note_probe(next);
}

static void order_candidates(struct next_attempt *next)
{
	const struct wlb_topology_file *topology = wlbd_nodes_topology(next->request->wlbd->nodes);
	struct wlb_error error;
	if (topology == NULL)
		return;
	next->switches_known = wlbd_candidate_nodes_order(&next->candidates, topology, &error) == 0;
	if (!next->switches_known)
		wlbd_log(WLBD_LOG_WARNING, "run %s: its nodes keep their order: %s", next->request->run, error.message);
}

static void on_nodes(void *context, const struct wlb_error *error)
{
	struct next_attempt *next = context;
	struct wlbd *wlbd = next->request->wlbd;
	if (is_stopping(next))
		return;
	order_candidates(next);
	(void)error;          /* the old table is better than none */
	next->due_probes = 1; /* this function: probes may answer at once */
	for (int i = 0; i < next->candidates.count; i++) {
		struct wlbd_candidate_node *candidate = &next->candidates.list[i];
		const struct wlbd_node *node = wlbd_nodes_find(wlbd->nodes, candidate->name);
		if (node == NULL)
			continue; /* nothing is known about it */
		struct candidate_probe *probe = calloc(1, sizeof(*probe));
		candidate->down = candidate->down || node->down;
		if (probe == NULL)
			continue;
		*probe = (struct candidate_probe){.next = next, .candidate = i};
		next->due_probes++;
		wlbd_node_probe(wlbd->node_probes, candidate->name, next->request->uid, on_probed, probe);
	}
	note_probe(next);
}

/* ---- 5: the previous attempt ------------------------------------------------------------------------- */

/* Returns whether the cause of the previous attempt's end is still to be judged. Nodes that did not answer are symptoms
 * of the cause. The symptoms are raised before the end is noted, so that both are judged together. */
static bool is_previous_judged_later(struct next_attempt *next)
{
	const struct wlbd_previous_attempt *previous_body = &next->body.previous;
	struct wlbd_attempt *previous = NULL;
	if (previous_body->attempt_id != NULL)
		previous = wlbd_attempts_find(next->request->wlbd->attempts, previous_body->attempt_id);
	if (previous == NULL || previous->run_pk != next->run_pk)
		return false;
	for (int i = 0; i < next->candidates.count; i++) {
		const struct wlbd_candidate_node *node = &next->candidates.list[i];
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

static void on_all_probed(struct next_attempt *next)
{
	bool is_judging = is_previous_judged_later(next);
	/* What the outbox holds is not in the history that was read. */
	decide(next, is_judging || next->is_history_incomplete ||
	                     wlbd_outbox_holds(next->request->wlbd->outbox, next->run_pk));
}

/* ---- 6: the decision ----------------------------------------------------------------------------------- */

static json_t *names_of(const struct next_attempt *next, const int *use, int count)
{
	json_t *names = json_array();
	for (int i = 0; i < count; i++)
		json_array_append_new(names, json_string(next->candidates.list[use[i]].name));
	return names;
}

/* A client may name what it likes: only nodes of Slurm, where these are known, are stored with the decision. */
static json_t *unresponsive_names(const struct next_attempt *next)
{
	const struct wlbd_nodes *nodes = next->request->wlbd->nodes;
	bool are_known = wlbd_nodes_count(nodes) > 0;
	json_t *names = json_array();
	for (int i = 0; i < next->candidates.count; i++) {
		const struct wlbd_candidate_node *node = &next->candidates.list[i];
		if (wlbd_node_may_return(node) && (!are_known || wlbd_nodes_find(nodes, node->name) != NULL))
			json_array_append_new(names, json_string(node->name));
	}
	return names;
}

/* Returns the nodes that work and are excluded for what ranks did on them: the launcher checks them. A node that has
 * passed before is not checked again. Returns NULL if out of memory. */
static json_t *suspect_names(const struct next_attempt *next, const struct wlbd_decision *decision)
{
	const json_t *given_back = json_object_get(next->history, "given_back");
	bool *used = calloc((size_t)next->candidates.count + 1, sizeof(*used));
	json_t *names = used != NULL ? json_array() : NULL;
	for (int i = 0; used != NULL && i < decision->use_count + decision->spare_count; i++)
		used[decision->use[i]] = true;
	for (int i = 0; names != NULL && i < next->candidates.count; i++) {
		const struct wlbd_candidate_node *node = &next->candidates.list[i];
		if (wlbd_node_may_pass(node) && !used[i] && json_object_get(given_back, node->name) == NULL)
			json_array_append_new(names, json_string(node->name));
	}
	free(used);
	return names;
}

static void start(struct next_attempt *next, const struct wlbd_decision *decision)
{
	const struct wlb_layout *layout = &decision->layout;
	struct wlbd_params params = {0};
	json_t *reply = json_pack(
		"{s:s, s:o, s:I, s:{s:i, s:i, s:i, s:i}, s:o, s:O, s:o}", "decision", "start", "nodes",
		names_of(next, decision->use, decision->use_count), "tasks_per_node",
		(json_int_t)next->body.tasks_per_node, "layout", "tp", layout->tp, "cp", layout->cp, "pp", layout->pp,
		"dp", layout->dp, "spares", names_of(next, decision->use + decision->use_count, decision->spare_count),
		"checkpoint", json_object_get(next->history, "checkpoint"), "reason", wlb_json_text(decision->reason));
	json_object_set_new(reply, "of_job", json_boolean(next->job_nodes_known));
	json_object_set_new(reply, "missing", unresponsive_names(next));
	json_object_set_new(reply, "suspects", suspect_names(next, decision));
	json_object_set_new(reply, "on_rank_exit", json_string(next->body.on_rank_exit));
	if (next->switches_known)
		json_object_set_new(reply, "switches", wlbd_switches_json(&next->candidates, decision));
	json_object_set_new(reply, "gpu_types",
	                    wlbd_gpu_types_json(next->request->wlbd->nodes, &next->candidates, decision));
	char *text = json_dumps(reply, JSON_COMPACT);
	char *policy = wlbd_policy_text(next->body.policy);
	json_decref(reply);
	wlbd_params_add_integer(&params, next->run_pk);
	wlbd_params_add_text(&params, next->body.attempt_id);
	wlbd_params_add_text(&params, text);
	wlbd_params_add_text(&params, policy != NULL ? policy : "{}");
	wlbd_params_add_integer(&params, wlbd_candidate_nodes_held(&next->candidates));
	wlbd_run_change(next->request->wlbd, next->request->uid, wlbd_run_job_id(next->request->run),
	                "select wlb_attempt_start($1, $2, $3::jsonb, $4::jsonb, $5::integer)", &params, on_started,
	                next);
	free(text);
	free(policy);
}

static void stop(struct next_attempt *next, const char *state, const char *reason)
{
	struct wlbd_params params = {0};
	wlbd_params_add_integer(&params, next->run_pk);
	wlbd_params_add_text(&params, state);
	wlbd_params_add_text(&params, reason);
	wlbd_log(WLBD_LOG_INFO, "run %s: %s: %s", next->request->run, state, reason);
	wlbd_outbox_put(next->request->wlbd->outbox, owner_of(next), next->run_pk,
	                "select wlb_run_end($1, $2, $3, 'coordinator')", &params);
	finish(next, json_pack("{s:s, s:s, s:o}", "decision", "stop", "state", state, "reason", wlb_json_text(reason)));
}

/* Returns the nodes of the attempt that the job still has and that answer: other nodes have no part in what happened to
 * the attempt. */
static json_t *reachable_nodes(const struct next_attempt *next, const json_t *of_attempt)
{
	json_t *names = json_array(), *known = json_object();
	size_t k;
	const json_t *name;
	json_array_foreach((json_t *)of_attempt, k, name)
		json_object_set_new(known, json_string_value(name), json_true());
	for (int i = 0; i < next->candidates.count; i++) {
		const struct wlbd_candidate_node *node = &next->candidates.list[i];
		if (!node->down && !node->silent && json_object_get(known, node->name) != NULL)
			json_array_append_new(names, json_string(node->name));
	}
	json_decref(known);
	return names;
}

static bool place_fault(struct next_attempt *next, const json_t *nodes, const json_t *step)
{
	char why[WLBD_LINKS_WHY_SIZE], sentence[WLBD_LINKS_WHY_SIZE + 64];
	struct wlbd_params params = {0};
	const char *node = wlbd_links_body_worst(&next->body.links, nodes, why);
	if (node == NULL)
		return false;
	wlbd_log(WLBD_LOG_WARNING, "run %s: %s", next->request->run, why);
	wlbd_params_add_integer(&params, next->run_pk);
	wlbd_params_add_text(&params, node);
	wlbd_params_add_text(&params, why);
	if (json_is_integer(step))
		wlb_text_format(sentence, sizeof(sentence), "%s: ranks hang at step %lld", why,
		                (long long)json_integer_value(step));
	wlbd_params_add_text(&params, json_is_integer(step) ? sentence : why);
	wlbd_outbox_put(next->request->wlbd->outbox, owner_of(next), next->run_pk,
	                "select wlb_fault_place($1, $2, $3, $4)", &params);
	reply_wait(next, WLBD_RETRY_SOON_S, why);
	return true;
}

/* The newest attempt was ended because ranks on several nodes hung. The launcher is asked which nodes do not reach each
 * other. The node whose link is broken becomes the node of the fault, which the next request finds in the history.
 * Returns whether the request is answered. */
static bool is_link_looked_for(struct next_attempt *next)
{
	const struct wlbd_links_body *links = &next->body.links;
	const json_t *fault = json_object_get(next->history, "unplaced");
	const json_t *of_attempt = json_object_get(fault, "nodes");
	if (!links->can_check || !json_is_array(of_attempt))
		return false;
	json_t *nodes = reachable_nodes(next, of_attempt);
	bool is_answered = false;
	if (links->checked)
		is_answered = place_fault(next, nodes, json_object_get(fault, "step"));
	else if (json_array_size(nodes) > 1) {
		finish(next, json_pack("{s:s, s:O, s:s}", "decision", "check_links", "nodes", nodes, "reason",
		                       "ranks on several nodes hung"));
		is_answered = true;
	}
	json_decref(nodes);
	return is_answered;
}

static double since_end_s(const struct next_attempt *next)
{
	const json_t *value = json_object_get(next->history, "since_end_s");
	return json_is_number(value) ? json_number_value(value) : HUGE_VAL;
}

static void decide(struct next_attempt *next, bool is_judging)
{
	if (!is_judging && is_link_looked_for(next))
		return;
	struct wlbd_decision decision;
	struct wlbd_decision_facts facts = {
		.nodes = next->candidates.list,
		.node_count = next->candidates.count,
		.tasks_per_node = (int)next->body.tasks_per_node,
		.policy = next->body.layout,
		.min_nodes = (int)next->body.min_nodes,
		.spares = (int)next->body.spares,
		.first_total = history_integer(next, "first_total"),
		.attempts_without_progress = history_integer(next, "attempts_without_progress"),
		.since_end_s = since_end_s(next),
		.back_off_s = next->request->wlbd->config.back_off_ms / 1e3,
		.program_step = next->candidates.program_step,
		.previous_exit_code = (int)next->body.previous.exit_code,
		.has_worked = json_is_object(json_object_get(next->history, "checkpoint")) ||
	                      json_is_true(json_object_get(next->history, "has_lasted")),
		.judging = is_judging,
	};
	if (wlbd_decide(&facts, &decision) != 0) {
		fail_memory(next);
		return;
	}
	switch (decision.verb) {
	case WLBD_START:
		start(next, &decision);
		break;
	case WLBD_WAIT:
		reply_wait(next, decision.retry_after_s, decision.reason);
		break;
	case WLBD_STOP_FAILED:
		stop(next, "failed", decision.reason);
		break;
	case WLBD_STOP_OUT_OF_NODES:
		stop(next, "out_of_nodes", decision.reason);
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
	struct next_attempt *next = context;
	struct wlbd *wlbd = next->request->wlbd;
	if (result->status != WLBD_DB_OK) {
		fail(next, result->http_status, result->message);
		return;
	}
	json_t *stored = json_loads(result->value, 0, NULL);
	struct wlbd_attempt *attempt = wlbd_attempts_put(wlbd, json_object_get(stored, "attempt"));
	json_t *reply = json_incref(json_object_get(stored, "decision"));
	if (attempt != NULL) {
		if (next->job_known)
			wlbd_attempts_confirm(wlbd, attempt->run_pk, &next->job);
		supersede_older(wlbd, attempt);
		wlbd_attempt_end_older(wlbd, attempt);
		wlbd_log(WLBD_LOG_INFO, "run %s: attempt %lld on %d nodes: %s", attempt->run,
		         (long long)attempt->number, attempt->nodes.started_on.count,
		         json_string_value(json_object_get(reply, "reason")));
		wlbd->counters.attempts_started++;
	}
	json_decref(stored);
	finish(next, reply);
}

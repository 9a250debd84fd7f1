#include "coordinator/wlbd/attempts/attempts.h"

#include <ctype.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlbd/budget.h"
#include "coordinator/wlbd/detection/detection.h"
#include "coordinator/wlbd/detection/processes.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/slurm/nodes.h"
#include "coordinator/wlbd/wlbd.h"

enum {
	USER_ATTEMPTS_MAX = 4096,
	USER_CLAIMED_MAX = 64,
	REPORTER_BYTES = sizeof(struct wlbd_reporter) + 64, /* with its places in two trees */
};

static int by_uuid(const void *a, const void *b)
{
	return strcmp(((const struct wlbd_attempt *)a)->uuid, ((const struct wlbd_attempt *)b)->uuid);
}

/* One reporter for each node, and one for the launcher, which may be on the node of another reporter. */
static int by_place(const void *a, const void *b)
{
	const struct wlbd_reporter *x = a;
	const struct wlbd_reporter *y = b;
	bool launcher = x->rank == WLBD_LAUNCHER;
	if (launcher != (y->rank == WLBD_LAUNCHER))
		return launcher ? 1 : -1;
	return launcher ? 0 : strcmp(x->node, y->node);
}

static int by_connection(const void *a, const void *b)
{
	const struct wlbd_reporter *x = a;
	const struct wlbd_reporter *y = b;
	return (x->connection > y->connection) - (x->connection < y->connection);
}

static void copy_uuid(char to[37], const char *from)
{
	size_t i = 0;
	for (; i < 36 && from[i] != '\0'; i++)
		to[i] = (char)tolower((unsigned char)from[i]);
	to[i] = '\0';
}

struct wlbd_attempts *wlbd_attempts_new(event_callback_fn judge)
{
	struct wlbd_attempts *attempts = calloc(1, sizeof(*attempts));
	if (attempts == NULL)
		return NULL;
	attempts->judge = judge;
	TAILQ_INIT(&attempts->list);
	return attempts;
}

struct wlbd_attempt *wlbd_attempts_find(const struct wlbd_attempts *attempts, const char *uuid)
{
	struct wlbd_attempt key;
	copy_uuid(key.uuid, uuid);
	struct wlbd_attempt **found = tfind(&key, &attempts->tree, by_uuid);
	return found != NULL ? *found : NULL;
}

struct wlbd_attempt_ref wlbd_attempt_ref(const struct wlbd_attempt *attempt)
{
	struct wlbd_attempt_ref ref = {.wlbd = attempt->wlbd};
	memcpy(ref.uuid, attempt->uuid, sizeof(ref.uuid));
	return ref;
}

struct wlbd_attempt *wlbd_attempt_ref_find(const struct wlbd_attempt_ref *ref)
{
	return ref->wlbd->stopping ? NULL : wlbd_attempts_find(ref->wlbd->attempts, ref->uuid);
}

/* The memory that a user's requests can take is bounded. */
bool wlbd_attempts_full(const struct wlbd_attempts *attempts, uid_t uid, bool is_claim)
{
	const struct wlbd_attempt *attempt;
	int count = 0;
	int claimed = 0;
	TAILQ_FOREACH(attempt, &attempts->list, link)
	{
		count += attempt->uid == uid;
		claimed += attempt->uid == uid && !attempt->nodes.allocation_known;
	}
	return count >= USER_ATTEMPTS_MAX || (is_claim && claimed >= USER_CLAIMED_MAX);
}

/* ---- life of an attempt ------------------------------------------------------------------------ */

void wlbd_reporter_set_processes(struct wlbd_reporter *reporter, const struct wlbd_node_processes *processes)
{
	const struct wlbd_attempt_nodes *nodes = &reporter->attempt->nodes;
	if (reporter->processes != NULL && processes == NULL) {
		wlbd_budget_give(nodes->budget, nodes->uid, sizeof(*processes));
		free(reporter->processes);
		reporter->processes = NULL;
	}
	if (processes == NULL)
		return;
	if (reporter->processes == NULL &&
	    wlbd_budget_take(nodes->budget, nodes->uid, sizeof(*processes)) == WLBD_BUDGET_TAKEN) {
		reporter->processes = malloc(sizeof(*processes));
		if (reporter->processes == NULL)
			wlbd_budget_give(nodes->budget, nodes->uid, sizeof(*processes));
	}
	if (reporter->processes != NULL)
		*reporter->processes = *processes;
}

static void reporter_free(struct wlbd_attempt *attempt, struct wlbd_reporter *reporter)
{
	wlbd_reporter_detach(reporter);
	wlbd_reporter_set_processes(reporter, NULL);
	TAILQ_REMOVE(&attempt->reporters.list, reporter, link);
	tdelete(reporter, &attempt->reporters.tree, by_place);
	attempt->reporters.count--;
	attempt->wlbd->attempts->reporters--;
	wlbd_budget_give(attempt->nodes.budget, attempt->nodes.uid, REPORTER_BYTES);
	free(reporter);
}

static void attempt_free(struct wlbd_attempt *attempt)
{
	while (!TAILQ_EMPTY(&attempt->reporters.list))
		reporter_free(attempt, TAILQ_FIRST(&attempt->reporters.list));
	event_free(attempt->ending.judge_timer);
	wlbd_detection_free(attempt->watch.detection);
	free(attempt->outliers);
	free(attempt->process_faults);
	wlbd_activities_free(&attempt->activities);
	wlbd_incident_clear(&attempt->incident);
	wlbd_attempt_nodes_free(&attempt->nodes);
	wlbd_names_free(&attempt->unreported.nodes);
	free(attempt);
}

void wlbd_attempts_remove(struct wlbd *wlbd, struct wlbd_attempt *attempt)
{
	TAILQ_REMOVE(&wlbd->attempts->list, attempt, link);
	tdelete(attempt, &wlbd->attempts->tree, by_uuid);
	wlbd->attempts->count--;
	attempt_free(attempt);
}

void wlbd_attempts_free(struct wlbd_attempts *attempts)
{
	while (attempts != NULL && !TAILQ_EMPTY(&attempts->list))
		wlbd_attempts_remove(TAILQ_FIRST(&attempts->list)->wlbd, TAILQ_FIRST(&attempts->list));
	free(attempts);
}

/* Returns the earliest time of the attempts of the run that are in memory; 0: none has one. */
static int64_t job_over_ms(const struct wlbd_attempts *attempts, int64_t run_pk)
{
	const struct wlbd_attempt *attempt;
	int64_t earliest_ms = 0;
	TAILQ_FOREACH(attempt, &attempts->list, link)
	if (attempt->run_pk == run_pk && attempt->job.over_ms != 0 &&
	    (earliest_ms == 0 || attempt->job.over_ms < earliest_ms))
		earliest_ms = attempt->job.over_ms;
	return earliest_ms;
}

static struct wlbd_attempt *attempt_new(struct wlbd *wlbd, const char *uuid, uid_t uid)
{
	struct wlbd_attempt *attempt = calloc(1, sizeof(*attempt));
	if (attempt == NULL)
		return NULL;
	attempt->wlbd = wlbd;
	attempt->made_ms = wlb_clock_ms();
	attempt->nodes = (struct wlbd_attempt_nodes){.budget = wlbd->attempt_budget, .uid = uid};
	attempt->activities = (struct wlbd_activities){.budget = wlbd->activity_budget, .uid = uid};
	copy_uuid(attempt->uuid, uuid);
	TAILQ_INIT(&attempt->reporters.list);
	TAILQ_INIT(&attempt->questions);
	attempt->ending.judge_timer = evtimer_new(wlbd->base, wlbd->attempts->judge, attempt);
	if (attempt->ending.judge_timer == NULL || tsearch(attempt, &wlbd->attempts->tree, by_uuid) == NULL) {
		if (attempt->ending.judge_timer != NULL)
			event_free(attempt->ending.judge_timer);
		free(attempt);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&wlbd->attempts->list, attempt, link);
	wlbd->attempts->count++;
	return attempt;
}

/* Nodes and ranks, as far as the JSON has them. Returns -1 if out of memory, or where the nodes are too many. */
static int set_nodes(struct wlbd_attempt *attempt, const json_t *attempt_json)
{
	const json_t *ranks = json_object_get(attempt_json, "rank_nodes");
	if (json_array_size(ranks) > 0)
		return wlbd_attempt_nodes_set_ranks(&attempt->nodes, ranks);
	return wlbd_attempt_nodes_set(&attempt->nodes, json_object_get(attempt_json, "nodes"),
	                              (int)json_integer_value(json_object_get(attempt_json, "world_size")));
}

/* Where the text cannot be read, what wlbd.conf says stays. */
static void set_on_fault(struct wlbd_attempt *attempt, const char *text)
{
	struct wlb_error error;
	attempt->policy.on_fault = attempt->wlbd->config.on_fault;
	if (text != NULL && wlb_on_fault_parse(text, &attempt->policy.on_fault, &error) != 0)
		wlbd_log(WLBD_LOG_ERROR, "run %s: what is done about its faults cannot be read from the database: %s",
		         attempt->run, error.message);
}

void wlbd_attempts_set_on_fault(struct wlbd *wlbd, int64_t run_pk, const char *text)
{
	struct wlbd_attempt *attempt;
	TAILQ_FOREACH(attempt, &wlbd->attempts->list, link)
	if (attempt->run_pk == run_pk)
		set_on_fault(attempt, text);
}

void wlbd_attempt_set_layout(struct wlbd_attempt *attempt, const json_t *object)
{
	struct wlb_layout layout = {0};
	int64_t ranks;
	if (json_unpack((json_t *)object, "{s:i, s:i, s:i, s:i}", "tp", &layout.tp, "cp", &layout.cp, "pp", &layout.pp,
	                "dp", &layout.dp) != 0 ||
	    layout.tp < 1 || layout.cp < 1 || layout.pp < 1 || layout.dp < 1 || layout.tp > WLBD_ACTIVITY_RANKS_MAX ||
	    layout.cp > WLBD_ACTIVITY_RANKS_MAX || layout.pp > WLBD_ACTIVITY_RANKS_MAX)
		return;
	ranks = (int64_t)layout.tp * layout.cp;
	if (ranks > WLBD_ACTIVITY_RANKS_MAX || ranks * layout.pp > WLBD_ACTIVITY_RANKS_MAX ||
	    ranks * layout.pp * layout.dp > WLBD_ACTIVITY_RANKS_MAX)
		return;
	attempt->layout = layout;
}

struct wlbd_attempt *wlbd_attempts_put(struct wlbd *wlbd, const json_t *attempt_json)
{
	const char *uuid;
	const char *run;
	json_int_t run_pk, attempt_pk, number, job_id, uid;
	int confirmed;
	json_error_t error;

	if (json_unpack_ex((json_t *)attempt_json, &error, 0, "{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:b}", "attempt_id",
	                   &uuid, "run", &run, "run_pk", &run_pk, "attempt_pk", &attempt_pk, "attempt", &number,
	                   "job_id", &job_id, "uid", &uid, "confirmed", &confirmed) != 0) {
		wlbd_log(WLBD_LOG_ERROR, "an attempt from the database cannot be read: %s", error.text);
		return NULL;
	}
	struct wlbd_attempt *attempt = wlbd_attempts_find(wlbd->attempts, uuid);
	if (attempt == NULL)
		attempt = attempt_new(wlbd, uuid, (uid_t)uid);
	if (attempt == NULL) {
		wlbd_log(WLBD_LOG_ERROR, "out of memory: attempt %s is not watched", uuid);
		return NULL;
	}
	snprintf(attempt->run, sizeof(attempt->run), "%s", run);
	attempt->run_pk = run_pk;
	attempt->job.over_ms = job_over_ms(wlbd->attempts, run_pk); /* a new attempt does not begin the time anew */
	attempt->attempt_pk = attempt_pk;
	attempt->number = number;
	attempt->job_id = (uint32_t)job_id;
	attempt->uid = (uid_t)uid;
	attempt->job.is_confirmed = attempt->job.is_confirmed || confirmed;
	const char *slurm_step = json_string_value(json_object_get(attempt_json, "slurm_step"));
	if (slurm_step != NULL)
		snprintf(attempt->slurm_step.id, sizeof(attempt->slurm_step.id), "%s", slurm_step);
	wlbd_attempt_set_layout(attempt, json_object_get(attempt_json, "layout"));
	attempt->slurm_step.has_reported =
		attempt->slurm_step.has_reported || json_is_true(json_object_get(attempt_json, "node_reported"));
	set_on_fault(attempt, json_string_value(json_object_get(attempt_json, "on_fault")));
	attempt->policy.min_nodes = (int)json_integer_value(json_object_get(attempt_json, "min_nodes"));
	attempt->policy.spares = (int)json_integer_value(json_object_get(attempt_json, "spares"));
	attempt->policy.goes_on = json_is_true(json_object_get(attempt_json, "goes_on"));
	if (set_nodes(attempt, attempt_json) != 0)
		wlbd_log_limited(WLBD_LOG_ERROR, WLBD_LIMIT_ATTEMPTS,
		                 "attempt %s: its nodes are more than its job has, or there is no memory for them: "
		                 "the attempts of uid %u, or of all users, hold as much as they may",
		                 uuid, attempt->uid);
	return attempt;
}

/* A job that has ended may be requeued. */
static void note_job_over(struct wlbd_attempt *attempt, bool is_over)
{
	if (!is_over)
		attempt->job.over_ms = 0;
	else if (attempt->job.over_ms == 0)
		attempt->job.over_ms = wlb_clock_ms();
}

void wlbd_attempts_confirm(struct wlbd *wlbd, int64_t run_pk, const struct wlb_slurm_job *job)
{
	struct wlbd_attempt *attempt;
	TAILQ_FOREACH(attempt, &wlbd->attempts->list, link)
	{
		if (attempt->run_pk != run_pk || attempt->uid != job->uid)
			continue;
		attempt->job.is_confirmed = true;
		note_job_over(attempt, job->finished);
		if (!attempt->nodes.allocation_known)
			wlbd_attempt_nodes_set_allocation(&attempt->nodes, job);
	}
}

void wlbd_attempts_job_unknown(struct wlbd *wlbd, int64_t run_pk)
{
	struct wlbd_attempt *attempt;
	TAILQ_FOREACH(attempt, &wlbd->attempts->list, link)
	if (attempt->run_pk == run_pk)
		note_job_over(attempt, true);
}

static bool has_connection(const struct wlbd_attempt *attempt)
{
	const struct wlbd_reporter *reporter;
	TAILQ_FOREACH(reporter, &attempt->reporters.list, link)
	if (reporter->connection != NULL)
		return true;
	return false;
}

bool wlbd_attempts_run_reports(const struct wlbd_attempts *attempts, int64_t run_pk, int64_t now_ms)
{
	const struct wlbd_attempt *attempt;
	TAILQ_FOREACH(attempt, &attempts->list, link)
	if (attempt->run_pk == run_pk && has_connection(attempt) &&
	    (attempt->job.over_ms == 0 || now_ms - attempt->job.over_ms < WLBD_LAST_REPORTS_MS))
		return true;
	return false;
}

void wlbd_attempt_judge_soon(struct wlbd_attempt *attempt)
{
	static const struct timeval now;
	event_add(attempt->ending.judge_timer, &now);
}

/* ---- reporters ----------------------------------------------------------------------------------- */

struct wlbd_reporter *wlbd_attempt_reporter(struct wlbd_attempt *attempt, const char *node, int rank)
{
	struct wlbd_reporter key = {.rank = rank};
	snprintf(key.node, sizeof(key.node), "%s", node);
	struct wlbd_reporter **found = tfind(&key, &attempt->reporters.tree, by_place);
	if (found != NULL) {
		if (rank == WLBD_LAUNCHER) /* of a requeued job, it may be on another node */
			snprintf((*found)->node, sizeof((*found)->node), "%s", node);
		return *found;
	}
	struct wlbd_budget *budget = attempt->nodes.budget;
	if (attempt->reporters.count > wlbd_attempt_nodes_max(&attempt->nodes) ||
	    wlbd_budget_take(budget, attempt->nodes.uid, REPORTER_BYTES) != WLBD_BUDGET_TAKEN)
		return NULL;
	struct wlbd_reporter *reporter = calloc(1, sizeof(*reporter));
	if (reporter != NULL)
		*reporter = key;
	if (reporter == NULL || tsearch(reporter, &attempt->reporters.tree, by_place) == NULL) {
		wlbd_budget_give(budget, attempt->nodes.uid, REPORTER_BYTES);
		free(reporter);
		return NULL;
	}
	reporter->attempt = attempt;
	TAILQ_INSERT_TAIL(&attempt->reporters.list, reporter, link);
	attempt->reporters.count++;
	attempt->wlbd->attempts->reporters++;
	return reporter;
}

bool wlbd_attempt_has_reporter(const struct wlbd_attempt *attempt, const char *node)
{
	struct wlbd_reporter launcher = {.rank = WLBD_LAUNCHER};
	struct wlbd_reporter key = {.rank = 0};
	snprintf(key.node, sizeof(key.node), "%s", node);
	struct wlbd_reporter **found = tfind(&launcher, &attempt->reporters.tree, by_place);
	return (found != NULL && strcmp((*found)->node, node) == 0) ||
	       tfind(&key, &attempt->reporters.tree, by_place) != NULL;
}

static bool is_from_node(const struct wlbd_reporter *reporter)
{
	struct sockaddr_storage peer;
	const struct wlbd_node *node = wlbd_nodes_find(reporter->attempt->wlbd->nodes, reporter->node);
	return node != NULL && wlbd_connection_peer(reporter->connection, &peer) == 0 &&
	       wlbd_node_has_address(node, &peer);
}

static bool is_trusted(const struct wlbd_attempt *attempt, const struct wlbd_reporter *reporter, uid_t uid)
{
	return reporter->connection != NULL && (attempt->uid == uid || is_from_node(reporter)) &&
	       attempt->nodes.allocation_known && wlbd_attempt_nodes_may_have(&attempt->nodes, reporter->node);
}

int64_t wlbd_attempts_last_report_ms(const struct wlbd_attempts *attempts, const char *node, uid_t uid)
{
	const struct wlbd_attempt *attempt;
	struct wlbd_reporter key = {.rank = 0};
	int64_t report_ms = 0;
	snprintf(key.node, sizeof(key.node), "%s", node);
	TAILQ_FOREACH(attempt, &attempts->list, link)
	{
		struct wlbd_reporter **found = tfind(&key, &attempt->reporters.tree, by_place);
		if (found != NULL && (*found)->reported_ms > report_ms && is_trusted(attempt, *found, uid))
			report_ms = (*found)->reported_ms;
	}
	return report_ms;
}

/* ---- connections --------------------------------------------------------------------------------- */

void wlbd_reporter_detach(struct wlbd_reporter *reporter)
{
	if (reporter->connection == NULL)
		return;
	wlbd_connection_on_close(reporter->connection, NULL, NULL);
	tdelete(reporter, &reporter->attempt->wlbd->attempts->connections, by_connection);
	reporter->connection = NULL;
}

int wlbd_reporter_attach(struct wlbd_reporter *reporter, struct wlbd_connection *connection)
{
	struct wlbd_attempts *attempts = reporter->attempt->wlbd->attempts;
	struct wlbd_reporter key = {.connection = connection};
	if (reporter->connection == connection)
		return 0;
	wlbd_reporter_detach(reporter);
	struct wlbd_reporter **other = tfind(&key, &attempts->connections, by_connection);
	if (other != NULL)
		wlbd_reporter_detach(*other);
	reporter->connection = connection;
	if (tsearch(reporter, &attempts->connections, by_connection) != NULL)
		return 0;
	reporter->connection = NULL;
	return -1;
}

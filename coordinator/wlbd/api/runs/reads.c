/* GET: the database makes the JSON, which wlbd sends unchanged; what ranks do it adds from memory. */
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/on_fault.h"
#include "coordinator/wlbd/api/handlers.h"
#include "coordinator/wlbd/api/parameters.h"
#include "coordinator/wlbd/api/runs/metrics.h"
#include "coordinator/wlbd/api/runs/ranks_reply.h"
#include "coordinator/wlbd/attempts/attempts.h"
#include "coordinator/wlbd/database/db_pool.h"
#include "coordinator/wlbd/database/lease.h"
#include "coordinator/wlbd/database/sole_use.h"
#include "coordinator/wlbd/http/long_reply.h"
#include "coordinator/wlbd/http/reply.h"
#include "coordinator/wlbd/verdicts/found_verdicts.h"
#include "coordinator/wlbd/verdicts/process_faults.h"
#include "coordinator/wlbd/wlbd.h"

enum {
	RUNS_LIMIT = 100, /* without the parameter */
	STEPS_LIMIT = 1000,
	FAULTS_LIMIT = 50,
	ROWS_MAX = 100000, /* of the parameter; the schema returns at most 10,000 */
	POINTS_MAX = 2000,
	EVERY_MAX = 1000000000, /* steps */
	FAULTS_MAX = 1000,
};

static const int64_t since_max_s = INT64_C(100000000000); /* since 1970, as of a record */

/* Of a wlbd that stands by. */
static void reply_standby_health(struct wlbd_request *request)
{
	const struct wlbd_lease *lease = request->wlbd->lease;
	const char *reason = wlbd_lease_reason(lease);
	bool ok = *reason == '\0';
	wlbd_request_reply(request, ok ? 200 : 503,
	                   json_pack("{s:s, s:s, s:s, s:s, s:s}", "status", ok ? "ok" : "degraded", "version",
	                             WLB_VERSION, "database", ok ? "ok" : reason, "role", "standby", "active",
	                             wlbd_lease_address(lease)));
}

void wlbd_get_health(struct wlbd_request *request)
{
	const struct wlbd *wlbd = request->wlbd;
	if (!wlbd->is_acting) {
		reply_standby_health(request);
		return;
	}
	bool connected = wlbd_db_ready(wlbd->writes) && wlbd_db_pool_ready(wlbd->changes) &&
	                 wlbd_db_pool_ready(wlbd->deliveries) && wlbd_db_pool_ready(wlbd->reads);
	bool ok = connected && wlbd_database_stores(wlbd);
	const char *reason = connected ? "it answers and cannot store; see wlbd's log" : wlbd_db_reason(wlbd->writes);
	const char *other = wlbd->sole_use != NULL ? wlbd_sole_use_other(wlbd->sole_use) : "";
	json_t *reply =
		json_pack("{s:s, s:s, s:s}", "status", ok ? "ok" : "degraded", "version", WLB_VERSION, "database",
	                  ok                ? "ok"
	                  : *reason != '\0' ? reason
	                                    : "not connected yet");
	if (*other != '\0')
		json_object_set_new(reply, "other_wlbd", json_string(other));
	if (wlbd->lease != NULL) {
		json_object_set_new(reply, "role", json_string("active"));
		json_object_set_new(reply, "active", json_string(wlbd_lease_address(wlbd->lease)));
	}
	wlbd_request_reply(request, ok ? 200 : 503, reply);
}

void wlbd_get_metrics(struct wlbd_request *request)
{
	struct evbuffer *out = evbuffer_new();
	wlbd_metrics_write(request->wlbd, request->takes_openmetrics, out);
	wlbd_request_reply_buffer(request,
	                          request->takes_openmetrics
	                                  ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
	                                  : "text/plain; version=0.0.4",
	                          out);
}

static void ask(struct wlbd_request *request, const char *sql, const struct wlbd_params *params)
{
	wlbd_db_pool_execute(request->wlbd->reads, request->uid, 0, sql, params, wlbd_request_reply_db, request);
}

void wlbd_get_runs(struct wlbd_request *request)
{
	struct wlbd_params params = {0};
	int64_t limit = RUNS_LIMIT;
	int64_t since_s = 0;
	if (wlbd_parameter_number(request, "limit", 0, ROWS_MAX, &limit) != 0 ||
	    wlbd_parameter_number(request, "since", 0, since_max_s, &since_s) != 0)
		return;
	wlbd_parameter_add_reader(&params, request);
	wlbd_params_add_text(&params, wlbd_request_parameter(request, "user"));
	wlbd_params_add_text(&params, wlbd_request_parameter(request, "state"));
	wlbd_params_add_integer(&params, limit);
	wlbd_params_add_integer_if(&params, since_s > 0, since_s);
	wlbd_params_add_text(&params, wlbd_request_parameter(request, "model"));
	wlbd_params_add_text(&params, wlbd_request_parameter(request, "node"));
	wlbd_params_add_text(&params, wlbd_request_parameter(request, "text"));
	wlbd_params_add_text(&params, wlbd_request_parameter(request, "sort"));
	wlbd_params_add_text(&params, wlbd_request_parameter(request, "tag"));
	wlbd_params_add_text(&params, wlbd_request_parameter(request, "account"));
	ask(request, "select wlb_runs_json($1, $2, $3, $4, to_timestamp($5::float8), $6, $7, $8, $9, $10, $11)",
	    &params);
}

void wlbd_get_run(struct wlbd_request *request)
{
	struct wlbd_params params = {0};
	char on_fault[WLB_ON_FAULT_SIZE];
	const char *steps = wlbd_request_parameter(request, "steps");
	if (steps != NULL && strcmp(steps, "all") != 0) {
		wlbd_request_fail(request, 400,
		                  "parameter 'steps': '%.60s' must be all; without it the steps are left out", steps);
		return;
	}
	wlbd_params_add_text(&params, request->run);
	wlbd_parameter_add_reader(&params, request);
	wlbd_params_add_boolean(&params, steps != NULL);
	wlbd_params_add_integer(&params, request->uid);
	wlb_on_fault_text(&request->wlbd->config.on_fault, on_fault, sizeof(on_fault));
	wlbd_params_add_text(&params, on_fault);
	wlbd_params_add_boolean(&params, wlbd_request_privileged(request));
	ask(request, "select wlb_run_shown($1, $2, $3, $4, $5, $6)", &params);
}

void wlbd_get_steps(struct wlbd_request *request)
{
	struct wlbd_params params = {0};
	int64_t from = 0;
	int64_t limit = STEPS_LIMIT;
	int64_t points = 0; /* all */
	int64_t every = 1;
	if (wlbd_parameter_number(request, "from", 0, INT64_MAX, &from) != 0 ||
	    wlbd_parameter_number(request, "limit", 0, ROWS_MAX, &limit) != 0 ||
	    wlbd_parameter_number(request, "points", 1, POINTS_MAX, &points) != 0 ||
	    wlbd_parameter_number(request, "every", 1, EVERY_MAX, &every) != 0)
		return;
	wlbd_params_add_text(&params, request->run);
	wlbd_parameter_add_reader(&params, request);
	wlbd_params_add_integer(&params, from);
	wlbd_params_add_integer(&params, limit);
	wlbd_params_add_integer_if(&params, points > 0, points);
	wlbd_params_add_integer(&params, request->uid);
	wlbd_params_add_integer(&params, every);
	ask(request, "select wlb_run_steps_json($1, $2, $3, $4, $5, $6, $7)", &params);
}

/* Answers 400 and returns -1 where the parameter is no run's name. */
static int check_run_parameter(struct wlbd_request *request, const char *run)
{
	if (run == NULL || wlbd_run_alias_valid(run))
		return 0;
	wlbd_request_fail(request, 400, "parameter 'run': '%.60s' must be a run's name, such as 12, 12.2 or 12_1", run);
	return -1;
}

void wlbd_get_faults(struct wlbd_request *request)
{
	struct wlbd_params params = {0};
	const char *run = wlbd_request_parameter(request, "run");
	int64_t limit = run != NULL ? FAULTS_MAX : FAULTS_LIMIT;
	int64_t since_s = 0;
	if (check_run_parameter(request, run) != 0 ||
	    wlbd_parameter_number(request, "since", 0, since_max_s, &since_s) != 0 ||
	    wlbd_parameter_number(request, "limit", 1, FAULTS_MAX, &limit) != 0)
		return;
	wlbd_params_add_text(&params, run);
	wlbd_parameter_add_reader(&params, request);
	wlbd_params_add_integer(&params, request->uid);
	wlbd_params_add_text(&params, wlbd_request_parameter(request, "node"));
	wlbd_params_add_integer_if(&params, since_s > 0, since_s);
	wlbd_params_add_integer(&params, limit);
	wlbd_params_add_boolean(&params, wlbd_request_privileged(request));
	ask(request, "select wlb_faults_list($1, $2, $3, $4, to_timestamp($5::float8), $6, $7)", &params);
}

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

/* `facts` is the run and its newest attempt, which may have none; the verdicts that are open are added to it. */
static void reply_ranks(struct wlbd_request *request, json_t *facts)
{
	const char *uuid = json_string_value(json_object_get(facts, "attempt_id"));
	const struct wlbd_attempt *attempt = uuid != NULL ? wlbd_attempts_find(request->wlbd->attempts, uuid) : NULL;
	int64_t now_ms = wlb_clock_ms();
	json_object_set_new(facts, "verdicts", attempt != NULL ? wlbd_verdicts_json(attempt, now_ms) : json_array());
	char *text = json_dumps(facts, JSON_COMPACT);
	struct wlbd_rank_processes processes = {0};
	struct wlbd_known_ranks known = {.processes = &processes, .now_ms = now_ms};
	if (attempt != NULL) {
		known.nodes = &attempt->nodes;
		known.activities = &attempt->activities;
		known.detection = attempt->watch.detection;
		wlbd_process_faults_ranks(attempt, &processes);
	}
	char *reply = text != NULL ? wlbd_ranks_reply(text, facts, &known) : NULL;
	wlbd_rank_processes_free(&processes);
	free(text);
	if (reply == NULL)
		wlbd_request_fail_memory(request);
	else
		wlbd_request_reply_long(request, reply);
	free(reply);
}

static void on_ranks(void *context, const struct wlbd_db_result *result)
{
	struct wlbd_request *request = context;
	if (result->status != WLBD_DB_OK) {
		wlbd_request_fail_db(request, result);
		return;
	}
	json_t *facts = json_loads(result->value, 0, NULL);
	if (facts != NULL)
		reply_ranks(request, facts);
	else
		wlbd_request_fail_memory(request);
	json_decref(facts);
}

void wlbd_get_ranks(struct wlbd_request *request)
{
	struct wlbd_params params = {0};
	wlbd_params_add_text(&params, request->run);
	wlbd_parameter_add_reader(&params, request);
	wlbd_params_add_integer(&params, request->uid);
	wlbd_db_pool_execute(
		request->wlbd->reads, request->uid, 0,
		"select json_build_object('run_id', r.name, 'alias', r.alias, 'state', r.state, 'reason', r.reason, "
		"'train_iters', "
		"r.train_iters, 'last_step', r.last_step, 'last_loss', wlb_real(r.last_loss), 'attempt', a.number, "
		"'attempt_id', a.uuid, 'layout', wlb_layout_json(a.tp, a.cp, a.pp, a.dp), 'world_size', "
		"coalesce(a.world_size, cardinality(a.nodes) * (a.decision->>'tasks_per_node')::integer), 'nodes', "
		"coalesce(a.nodes, '{}'), 'sampled', case when r.ended_at is not null then "
		"wlb_ranks_sampled_json(r.id) end) from wlb_run_readable($1, $2, $3) r left join lateral (select * "
		"from "
		"attempts "
		"where run_id = r.id order by number desc limit 1) a on true",
		&params, on_ranks, request);
}

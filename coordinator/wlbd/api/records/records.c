/* POST /v1/runs/RUN/records: the reply is sent after the commit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/wlbd/api/find_attempt.h"
#include "coordinator/wlbd/api/handlers.h"
#include "coordinator/wlbd/api/records/record_check.h"
#include "coordinator/wlbd/database/db_pool.h"
#include "coordinator/wlbd/http/reply.h"
#include "coordinator/wlbd/incident/symptoms.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/rules/cause.h"
#include "coordinator/wlbd/rules/decision.h"
#include "coordinator/wlbd/verdicts/outliers.h"
#include "coordinator/wlbd/wlbd.h"

/* ---- records that change the attempt in memory ----------------------------------------------------- */

static void note_nodes(struct wlbd_attempt *attempt, const json_t *data)
{
	const json_t *map = json_object_get(data, "rank_map");
	json_t *nodes = json_array(); /* of each rank */
	bool in_order = true;
	int rc = 0;
	for (size_t i = 0; i < json_array_size(map); i++) {
		const json_t *entry = json_array_get(map, i);
		in_order = in_order && json_integer_value(json_object_get(entry, "rank")) == (json_int_t)i;
		json_array_append(nodes, json_object_get(entry, "node"));
	}
	if (json_array_size(nodes) > 0)
		rc = in_order ? wlbd_attempt_nodes_set_ranks(&attempt->nodes, nodes)
		              : wlbd_attempt_nodes_set(&attempt->nodes, nodes,
		                                       (int)json_integer_value(json_object_get(data, "world_size")));
	if (rc != 0)
		wlbd_log_limited(WLBD_LOG_ERROR, WLBD_LIMIT_ATTEMPTS,
		                 "run %s: the nodes of its ranks are more than its job has, or there is no memory for "
		                 "them: the attempts of uid %u, or of all users, hold as much as they may",
		                 attempt->run, attempt->uid);
	json_decref(nodes);
}

/* The launcher records the nodes where wlbd has not decided on them; nodes that wlbd knows are not changed. */
static void note_attempt(struct wlbd_attempt *attempt, const char *source, const json_t *data)
{
	if (strcmp(source, "run") == 0 && attempt->nodes.started_on.count > 0)
		return;
	const char *on_rank_exit = json_string_value(json_object_get(data, "on_rank_exit"));
	note_nodes(attempt, data);
	wlbd_attempt_set_layout(attempt, json_object_get(data, "layout"));
	if (on_rank_exit != NULL)
		attempt->policy.goes_on = strcmp(on_rank_exit, "continue") == 0;
}

static void note_end(struct wlbd_attempt *attempt, const char *source, const struct wlbd_attempt_end *end)
{
	int by_state = strcmp(end->state, "complete") == 0 ? 0
	               : strcmp(end->state, "ended") == 0  ? WLBD_EXIT_ORDERED
	                                                   : 1;
	/* "ended": by order, or cancelled; the exit code is then that of the signal alone. */
	bool is_reported = end->has_exit_code && by_state != WLBD_EXIT_ORDERED;
	int exit_code = is_reported ? end->exit_code : by_state;
	if (strcmp(source, "run") == 0)
		wlbd_symptom_step_ended(attempt, exit_code, &end->first_exit);
	else
		wlbd_symptom_end_recorded(attempt, exit_code);
}

static void note_records(struct wlbd_attempt *attempt, const struct wlbd_delivery *delivery)
{
	size_t i;
	json_t *record;
	json_array_foreach((json_t *)delivery->records, i, record)
	{
		const char *type = json_string_value(json_object_get(record, "type"));
		const json_t *data = json_object_get(record, "data");
		bool is_step = strcmp(type, "step") == 0 || json_is_true(json_object_get(data, "is_step"));
		if (strcmp(type, "attempt") == 0)
			note_attempt(attempt, delivery->source, data);
		else if (is_step)
			wlbd_outliers_note_step(attempt, json_integer_value(json_object_get(data, "step")),
			                        json_is_true(json_object_get(data, "is_of_attempt")));
	}
	if (delivery->end.state != NULL)
		note_end(attempt, delivery->source, &delivery->end);
}

/* ---- the nodes of ranks ------------------------------------------------------------------------------ */

static int check_nodes(const struct wlbd_attempt *attempt, const json_t *map, struct wlb_error *error)
{
	for (size_t i = 0; i < json_array_size(map); i++) {
		const char *node = json_string_value(json_object_get(json_array_get(map, i), "node"));
		if (!wlbd_attempt_nodes_may_record(&attempt->nodes, node))
			return wlb_fail(error,
			                "rank_map[%zu]: node '%.100s' is none of job %u, nor was the attempt "
			                "started on it: record the ranks on the nodes that run them",
			                i, node, attempt->job_id);
	}
	return 0;
}

static int check_rank_maps(const struct wlbd_attempt *attempt, const json_t *records, struct wlb_error *error)
{
	size_t i;
	json_t *record;
	json_array_foreach((json_t *)records, i, record)
	{
		const json_t *data = json_object_get(record, "data");
		if (strcmp(json_string_value(json_object_get(record, "type")), "attempt") == 0 &&
		    check_nodes(attempt, json_object_get(data, "rank_map"), error) != 0)
			return wlb_fail_in(error, "records[%zu]: attempt", i);
	}
	return 0;
}

/* ---- faults ------------------------------------------------------------------------------------------ */

/* Of what a client says of a fault nothing proves how it happened. */
static json_t *judge_fault(const json_t *data)
{
	const json_t *rank = json_object_get(data, "rank"), *detail = json_object_get(data, "detail");
	const char *kind = json_string_value(json_object_get(data, "kind"));
	struct wlbd_fault fault = {.rank = json_is_integer(rank) ? (int)json_integer_value(rank) : -1,
	                           .node = json_string_value(json_object_get(data, "node")),
	                           .detail = json_is_string(detail) ? json_string_value(detail) : ""};
	while (fault.kind + 1 < WLB_FAULT_KIND_COUNT && strcmp(wlb_faults[fault.kind].name, kind) != 0)
		fault.kind++;
	return wlbd_cause_judge(&fault);
}

/* Returns what is stored with each fault among the records, by its sequence number, which the caller frees. */
static char *judge_faults(const json_t *records)
{
	json_t *judged = json_object(), *record;
	size_t i;
	json_array_foreach((json_t *)records, i, record)
	{
		char seq[WLBD_PARAM_NUMBER_SIZE];
		if (strcmp(json_string_value(json_object_get(record, "type")), "fault") != 0)
			continue;
		snprintf(seq, sizeof(seq), "%lld", (long long)json_integer_value(json_object_get(record, "seq")));
		json_object_set_new(judged, seq, judge_fault(json_object_get(record, "data")));
	}
	char *text = json_dumps(judged, JSON_COMPACT);
	json_decref(judged);
	return text;
}

/* ---- the request ------------------------------------------------------------------------------------- */

static void on_delivered(void *context, const struct wlbd_db_result *result)
{
	struct wlbd_request *request = context;
	json_t *reply = result->status == WLBD_DB_OK ? json_loads(result->value, 0, NULL) : NULL;
	json_int_t acked = json_integer_value(json_object_get(reply, "acked_seq"));
	if (result->status != WLBD_DB_OK) {
		wlbd_request_fail_db(request, result);
	} else if (json_is_true(json_object_get(reply, "gap"))) {
		wlbd_request_reply(request, 409,
		                   json_pack("{s:o, s:I}", "error",
		                             json_sprintf("field 'first_seq': must be %lld, the next after what is "
		                                          "stored; send from there",
		                                          (long long)acked + 1),
		                             "acked_seq", acked));
	} else {
		request->wlbd->counters.records_stored +=
			json_array_size(((const struct wlbd_delivery *)request->parsed)->records);
		wlbd_request_reply(request, 200, json_pack("{s:I}", "acked_seq", acked));
	}
	json_decref(reply);
}

static void store(struct wlbd_request *request, struct wlbd_attempt *attempt)
{
	const struct wlbd_delivery *delivery = request->parsed;
	struct wlbd_params params = {0};
	struct wlb_error error = {0};
	if (check_rank_maps(attempt, delivery->records, &error) != 0) {
		wlbd_request_fail(request, 400, "%s", error.message);
		return;
	}
	note_records(attempt, delivery);
	char *faults = judge_faults(delivery->records);
	wlbd_params_add_integer(&params, attempt->attempt_pk);
	wlbd_params_add_text(&params, delivery->source);
	wlbd_params_add_text(&params, request->text);
	wlbd_params_add_text(&params, faults);
	/* The records of a source are stored in the order in which they arrive. */
	uint64_t key = (uint64_t)attempt->attempt_pk * 2 + (strcmp(delivery->source, "run") == 0);
	wlbd_db_pool_execute(request->wlbd->deliveries, request->uid, key,
	                     "select wlb_deliver($1, $2, $3::jsonb, $4::jsonb)", &params, on_delivered, request);
	free(faults);
}

void wlbd_post_records(struct wlbd_request *request)
{
	struct wlb_error error = {0};
	struct wlbd_delivery *delivery = request->parsed = malloc(sizeof(*delivery));
	if (delivery == NULL)
		wlbd_request_fail_memory(request);
	else if (wlbd_delivery_check(request->body, delivery, &error) != 0)
		wlbd_request_fail(request, 400, "%s", error.message);
	else if (delivery->job_id != 0 && delivery->job_id != wlbd_run_job_id(request->run))
		wlbd_request_fail(request, 400, "field 'job_id': %lld must be the job of run %s",
		                  (long long)delivery->job_id, request->run);
	else
		wlbd_find_attempt(request, delivery->attempt_id, store);
}

/* POST /v1/runs/RUN/stacks/gather, which asks for the stacks of a run's ranks; POST /v1/runs/RUN/stacks, which stores
 * the stacks of a node; and GET, which returns the stacks of a run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/wlbd/api/find_attempt.h"
#include "coordinator/wlbd/api/handlers.h"
#include "coordinator/wlbd/api/parameters.h"
#include "coordinator/wlbd/api/reports/stacks_read.h"
#include "coordinator/wlbd/database/db_pool.h"
#include "coordinator/wlbd/http/long_reply.h"
#include "coordinator/wlbd/http/reply.h"
#include "coordinator/wlbd/verdicts/stacks.h"
#include "coordinator/wlbd/wlbd.h"

/* ---- asking ------------------------------------------------------------------------------------------------------ */

static void ask(struct wlbd_request *request, struct wlbd_attempt *attempt)
{
	int64_t stacks_id = wlbd_stacks_ask(attempt);
	if (stacks_id == 0)
		wlbd_request_fail(
			request, 409,
			"run %s: its attempt %lld has ended, or no wlb-agent reports for it, so that no stacks can be "
			"gathered",
			attempt->run, (long long)attempt->number);
	else
		wlbd_request_reply(request, 200,
		                   json_pack("{s:I, s:I, s:i}", "stacks_id", (json_int_t)stacks_id, "attempt",
		                             (json_int_t)attempt->number, "nodes_asked", attempt->stacks.nodes));
}

/* The answer has the attempt's id and the run's own name. */
static void on_newest_attempt(void *context, const struct wlbd_db_result *result)
{
	struct wlbd_request *request = context;
	char attempt_id[37];
	if (result->status != WLBD_DB_OK) {
		wlbd_request_fail_db(request, result);
	} else if (result->value == NULL) {
		wlbd_request_fail(request, 409, "run %s has no attempt yet", request->run);
	} else {
		snprintf(attempt_id, sizeof(attempt_id), "%s", result->value);
		snprintf(request->run, sizeof(request->run), "%s", strrchr(result->value, ' ') + 1);
		wlbd_find_attempt(request, attempt_id, ask);
	}
}

void wlbd_post_stacks_gather(struct wlbd_request *request)
{
	struct wlbd_params params = {0};
	wlbd_params_add_text(&params, request->run);
	wlbd_params_add_integer_if(&params, !wlbd_request_privileged(request), request->uid);
	wlbd_db_pool_execute(request->wlbd->reads, request->uid, 0,
	                     "select wlb_run_newest_attempt($1, $2) || ' ' || (wlb_run_actable($1, $2)).name", &params,
	                     on_newest_attempt, request);
}

/* ---- storing ----------------------------------------------------------------------------------------------------- */

static void on_stored(void *context, const struct wlbd_db_result *result)
{
	struct wlbd_request *request = context;
	const struct wlbd_stacks_body *stacks = request->parsed;
	struct wlbd_attempt *attempt = wlbd_attempts_find(request->wlbd->attempts, stacks->attempt_id);
	if (result->status == WLBD_DB_OK) {
		request->wlbd->counters.stacks_stored++;
		if (attempt != NULL)
			wlbd_stacks_note_stored(attempt, stacks->node, stacks->stacks_id);
		wlbd_request_reply_text(request, 200, result->value);
	} else {
		wlbd_request_fail_db(request, result);
	}
}

static void store(struct wlbd_request *request, const struct wlbd_attempt *attempt)
{
	const struct wlbd_stacks_body *stacks = request->parsed;
	struct wlbd_params params = {0};
	char *ranks = wlbd_stacks_text(stacks);
	if (ranks == NULL) {
		wlbd_request_fail_memory(request);
		return;
	}
	wlbd_params_add_integer(&params, attempt->attempt_pk);
	wlbd_params_add_integer(&params, stacks->stacks_id);
	wlbd_params_add_text(&params, stacks->node);
	wlbd_params_add_text(&params, ranks);
	wlbd_db_pool_execute(request->wlbd->deliveries, request->uid, (uint64_t)attempt->run_pk,
	                     "select wlb_stacks_put($1, $2, $3, $4)", &params, on_stored, request);
	free(ranks);
}

static void take(struct wlbd_request *request, struct wlbd_attempt *attempt)
{
	const struct wlbd_stacks_body *stacks = request->parsed;
	struct wlb_error error = {0};
	if (wlbd_stacks_belong(stacks, &attempt->nodes, &error) != 0)
		wlbd_request_fail(request, 403, "run %s, attempt %lld: %s", attempt->run, (long long)attempt->number,
		                  error.message);
	else if (stacks->stacks_id != attempt->stacks.id)
		wlbd_request_fail(request, 409, "stacks %lld of run %s were not asked for",
		                  (long long)stacks->stacks_id, attempt->run);
	else
		store(request, attempt);
}

void wlbd_post_stacks(struct wlbd_request *request)
{
	struct wlb_error error = {0};
	struct wlbd_stacks_body *stacks = request->parsed = malloc(sizeof(*stacks));
	if (stacks == NULL)
		wlbd_request_fail_memory(request);
	else if (wlbd_stacks_read(request->body, stacks, &error) != 0)
		wlbd_request_fail(request, 400, "%s", error.message);
	else
		wlbd_find_live_attempt(request, stacks->attempt_id, take);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

void wlbd_get_stacks(struct wlbd_request *request)
{
	struct wlbd_params params = {0};
	int64_t stacks_id = 0; /* the newest */
	const char *ranks = wlbd_request_parameter(request, "ranks");
	if (ranks != NULL && strcmp(ranks, "none") != 0) {
		wlbd_request_fail(request, 400,
		                  "parameter 'ranks': '%.60s' must be none; without it the ranks are listed", ranks);
		return;
	}
	if (wlbd_parameter_number(request, "stacks_id", 1, INT64_MAX, &stacks_id) != 0)
		return;
	wlbd_params_add_text(&params, request->run);
	wlbd_parameter_add_reader(&params, request);
	wlbd_params_add_integer(&params, request->uid);
	wlbd_params_add_integer_if(&params, stacks_id > 0, stacks_id);
	wlbd_params_add_boolean(&params, ranks == NULL);
	wlbd_db_pool_execute(request->wlbd->reads, request->uid, 0, "select wlb_stacks_json($1, $2, $3, $4, $5)",
	                     &params, wlbd_request_reply_db, request);
}

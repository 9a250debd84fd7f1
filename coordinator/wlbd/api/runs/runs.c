/* POST /v1/runs, which announces a run, and POST /v1/runs/RUN/end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/wlbd/api/find_attempt.h"
#include "coordinator/wlbd/api/first_exit.h"
#include "coordinator/wlbd/api/handlers.h"
#include "coordinator/wlbd/api/policy.h"
#include "coordinator/wlbd/api/run_change.h"
#include "coordinator/wlbd/http/fields.h"
#include "coordinator/wlbd/http/long_reply.h"
#include "coordinator/wlbd/http/question_share.h"
#include "coordinator/wlbd/http/reply.h"
#include "coordinator/wlbd/incident/requeued.h"
#include "coordinator/wlbd/incident/symptoms.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/rules/decision.h"
#include "coordinator/wlbd/slurm/job_params.h"
#include "coordinator/wlbd/wlbd.h"

/* ---- POST /v1/runs ----------------------------------------------------------------------------- */

struct announcement {
	struct wlbd_request *request;
	int64_t job_id;
	int64_t launch;       /* of `wlb run`, from 1; 0: the plugin announces the job */
	const char *launcher; /* the first attempt_id of that `wlb run`; NULL: not known */
	int64_t restart_count;
	const char *job_name;
	const char *cluster;
	const json_t *policy;
};

static int read_announcement(struct announcement *a, struct wlb_error *error)
{
	const json_t *body = a->request->body;
	const char *run = NULL;
	if (wlbd_field_text(body, "run_id", WLBD_OPTIONAL, WLBD_NAME_MAX, &run, error) != 0 ||
	    wlbd_field_integer(body, "job_id", WLBD_REQUIRED, 1, UINT32_MAX, &a->job_id, error) != 0 ||
	    wlbd_field_integer(body, "launch", WLBD_OPTIONAL, 1, 999999, &a->launch, error) != 0 ||
	    wlbd_field_integer(body, "restart_count", WLBD_OPTIONAL, 0, INT32_MAX, &a->restart_count, error) != 0 ||
	    wlbd_field_text(body, "job_name", WLBD_OPTIONAL, WLBD_TEXT_MAX, &a->job_name, error) != 0 ||
	    wlbd_field_text(body, "cluster", WLBD_OPTIONAL, WLBD_NAME_MAX, &a->cluster, error) != 0 ||
	    wlbd_field_object(body, "policy", WLBD_OPTIONAL, &a->policy, error) != 0)
		return -1;
	if (json_object_get(body, "launcher") != NULL && wlbd_field_uuid(body, "launcher", &a->launcher, error) != 0)
		return -1;
	if (run != NULL && (!wlbd_run_name_valid(run) || wlbd_run_job_id(run) != a->job_id))
		return wlb_fail(error, "field 'run_id': '%.60s' must be the job's id, %lld, or %lld.N", run,
		                (long long)a->job_id, (long long)a->job_id);
	return a->policy != NULL ? wlbd_policy_check(a->policy, error) : 0;
}

static void announce(struct announcement *a, const struct wlbd_job_facts *facts)
{
	struct wlbd *wlbd = a->request->wlbd;
	struct wlbd_params params = {0};
	char *policy = wlbd_policy_text(a->policy);
	bool known = facts->found == 1;

	wlbd_params_add_integer(&params, a->job_id);
	wlbd_params_add_integer_if(&params, a->launch > 0, a->launch);
	wlbd_params_add_text(&params, a->launcher);
	wlbd_params_add_integer(&params, a->restart_count);
	wlbd_params_add_integer(&params, facts->uid);
	wlbd_params_add_text(&params, facts->user);
	wlbd_params_add_text(&params, wlbd->cluster[0] != '\0' ? wlbd->cluster : a->cluster);
	wlbd_params_add_text(&params, known ? facts->job.name : a->job_name);
	wlbd_params_add_integer_if(&params, known, facts->job.submit_time);
	wlbd_params_add_integer(&params, known ? facts->job.restart_count : a->restart_count);
	wlbd_params_add_text(&params, policy != NULL ? policy : "{}");
	wlbd_params_add_job(&params, known ? &facts->job : NULL);
	wlbd_run_change(wlbd, a->request->uid, (uint32_t)a->job_id,
	                "select json_build_object('run_id', name, 'state', state) from (select r.*, "
	                "wlb_run_job_note(r.id, $12, $13, $14) "
	                "from wlb_run_announce($1, $2::integer, $3::uuid, $4::integer, $5, $6, $7, $8, "
	                "to_timestamp($9::float8), $10::integer, $11::jsonb) r) as announced",
	                &params, wlbd_request_reply_db, a->request);
	free(policy);
}

static void on_job(void *context, const struct wlbd_job_facts *facts)
{
	struct announcement *a = context;
	if (a->request->wlbd->stopping)
		wlbd_request_fail_stopping(a->request);
	else if (a->request->uid != facts->uid && !wlbd_request_privileged(a->request))
		wlbd_request_fail(a->request, 403, "job %lld belongs to %s", (long long)a->job_id, facts->user);
	else
		announce(a, facts);
	free(a);
}

void wlbd_post_run(struct wlbd_request *request)
{
	struct wlb_error error = {0};
	struct announcement *a = calloc(1, sizeof(*a));
	if (a == NULL) {
		wlbd_request_fail_memory(request);
		return;
	}
	*a = (struct announcement){.request = request, .job_name = "", .cluster = ""};
	if (read_announcement(a, &error) != 0) {
		wlbd_request_fail(request, 400, "%s", error.message);
		free(a);
		return;
	}
	if (!wlbd_db_ready(request->wlbd->writes)) { /* else the same reply would come only after Slurm's answer */
		wlbd_request_fail(request, 503, "the database is unavailable (%s); try again",
		                  wlbd_db_reason(request->wlbd->writes));
		free(a);
		return;
	}
	if (wlbd_question_share_take(request) == 0)
		wlbd_slurm_job(request->wlbd, (uint32_t)a->job_id, request->uid, on_job, a);
	else
		free(a);
}

/* ---- POST /v1/runs/RUN/end ----------------------------------------------------------------------- */

struct run_end {
	const char *state;
	const char *reason;
	const char *attempt_id; /* of the last attempt; NULL: not known */
	int64_t exit_code;
	struct wlbd_first_exit first; /* of the last attempt */
};

static int read_end(const json_t *body, struct run_end *end, struct wlb_error *error)
{
	static const char *const states[] = {"complete", "failed", "out_of_nodes", "cancelled", NULL};
	*end = (struct run_end){.reason = ""};
	if (json_object_get(body, "attempt_id") != NULL &&
	    wlbd_field_uuid(body, "attempt_id", &end->attempt_id, error) != 0)
		return -1;
	if (wlbd_field_choice(body, "state", WLBD_REQUIRED, states, &end->state, error) != 0 ||
	    wlbd_field_integer(body, "exit_code", WLBD_OPTIONAL, -255, 255, &end->exit_code, error) != 0 ||
	    wlbd_field_text(body, "reason", WLBD_OPTIONAL, WLBD_TEXT_MAX, &end->reason, error) != 0)
		return -1;
	return wlbd_first_exit_read(body, &end->first, error);
}

/* A cancelled run ended by order: no rank was lost. The order may be that its job is requeued. */
static void end_attempts(struct wlbd *wlbd, int64_t run_pk, const struct run_end *end)
{
	bool is_cancelled = strcmp(end->state, "cancelled") == 0;
	struct wlbd_attempt *attempt;
	TAILQ_FOREACH(attempt, &wlbd->attempts->list, link)
	{
		bool is_last = end->attempt_id != NULL && strcasecmp(attempt->uuid, end->attempt_id) == 0;
		if (attempt->run_pk == run_pk)
			wlbd_symptom_step_ended(attempt, is_cancelled ? WLBD_EXIT_ORDERED : (int)end->exit_code,
			                        is_last ? &end->first : NULL);
		if (attempt->run_pk == run_pk && is_last && is_cancelled)
			wlbd_requeued_ask(attempt);
	}
}

static void on_ended(void *context, const struct wlbd_db_result *result)
{
	struct wlbd_request *request = context;
	if (result->status != WLBD_DB_OK) {
		wlbd_request_fail_db(request, result);
		return;
	}
	json_t *ended = json_loads(result->value, 0, NULL);
	const char *state = json_string_value(json_object_get(ended, "state"));
	end_attempts(request->wlbd, json_integer_value(json_object_get(ended, "run_pk")), request->parsed);
	wlbd_log_limited(WLBD_LOG_INFO, WLBD_LIMIT_END, "run %s: %s", request->run, state);
	wlbd_request_reply(request, 200, json_pack("{s:s, s:s}", "run_id", request->run, "state", state));
	json_decref(ended);
}

void wlbd_post_end(struct wlbd_request *request)
{
	struct wlb_error error = {0};
	struct wlbd_params params = {0};
	struct run_end *end = request->parsed = malloc(sizeof(*end));
	if (end == NULL) {
		wlbd_request_fail_memory(request);
		return;
	}
	if (read_end(request->body, end, &error) != 0) {
		wlbd_request_fail(request, 400, "%s", error.message);
		return;
	}
	wlbd_params_add_text(&params, request->run);
	wlbd_params_add_integer_if(&params, !wlbd_request_privileged(request), request->uid);
	wlbd_params_add_text(&params, end->attempt_id);
	wlbd_params_add_text(&params, end->state);
	wlbd_params_add_text(&params, end->reason);
	wlbd_run_change(request->wlbd, request->uid, wlbd_run_job_id(request->run),
	                "select json_build_object('run_pk', (wlb_run_actable($1, $2)).id, "
	                "'state', wlb_run_end_by($1, $2, $3, $4, $5))",
	                &params, on_ended, request);
}

#include "coordinator/wlbd/requests/find_attempt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "coordinator/wlbd/http/reply.h"
#include "coordinator/wlbd/liveness/job_poll.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/rules/decision.h"
#include "coordinator/wlbd/wlbd.h"

/* A call that waits for the answer. */
struct waiter {
	TAILQ_ENTRY(waiter) link;
	struct wlbd_call *call;
	void (*then)(struct wlbd_call *call, struct wlbd_attempt *attempt);
};

struct resolution {
	TAILQ_ENTRY(resolution) link;
	struct wlbd *wlbd;
	char attempt_id[37];
	char run[WLBD_RUN_NAME_SIZE];
	uid_t uid;      /* who asks: each gets what the job's owner is compared with */
	bool job_known; /* Slurm was asked and knows the job, which is this: */
	struct wlb_slurm_job job;
	TAILQ_HEAD(, waiter) waiters;
};

struct wlbd_resolutions {
	TAILQ_HEAD(, resolution) list;
};

/* ---- answers --------------------------------------------------------------------------------------- */

static void deliver(struct wlbd_call *call, struct wlbd_attempt *attempt,
                    void (*then)(struct wlbd_call *call, struct wlbd_attempt *attempt))
{
	if (call->uid != attempt->uid && !wlbd_call_privileged(call))
		wlbd_call_fail(call, 403, "run %s belongs to another user", attempt->run);
	else if (strcmp(call->run, attempt->run) != 0)
		wlbd_call_fail(call, 400, "attempt %s belongs to run %s, not to run %s", attempt->uuid, attempt->run,
		               call->run);
	else
		then(call, attempt);
}

static void resolution_end(struct resolution *resolution)
{
	TAILQ_REMOVE(&resolution->wlbd->resolutions->list, resolution, link);
	free(resolution);
}

static void succeed(struct resolution *resolution, struct wlbd_attempt *attempt)
{
	struct waiter *waiter;
	while ((waiter = TAILQ_FIRST(&resolution->waiters)) != NULL) {
		TAILQ_REMOVE(&resolution->waiters, waiter, link);
		deliver(waiter->call, attempt, waiter->then);
		free(waiter);
	}
	resolution_end(resolution);
}

static void fail(struct resolution *resolution, int status, const char *message)
{
	struct waiter *waiter;
	while ((waiter = TAILQ_FIRST(&resolution->waiters)) != NULL) {
		TAILQ_REMOVE(&resolution->waiters, waiter, link);
		wlbd_call_fail(waiter->call, status, "%s", message);
		free(waiter);
	}
	resolution_end(resolution);
}

/* An attempt that is over is kept for its late records only. One that failed and still reports is told to end. */
static void note_state(struct wlbd_attempt *attempt, const json_t *card)
{
	const char *state = json_string_value(json_object_get(card, "state"));
	const char *reason = json_string_value(json_object_get(card, "reason"));
	if (state == NULL || strcmp(state, "starting") == 0 || strcmp(state, "running") == 0)
		return;
	wlbd_attempt_end(&attempt->incident.life, WLBD_EXIT_UNKNOWN, 0, wlb_clock_ms());
	if (strcmp(state, "failed") == 0)
		wlbd_attempt_order(&attempt->incident.life, wlb_clock_ms());
	attempt->incident.settled = true;
	snprintf(attempt->reason, sizeof(attempt->reason), "%s",
	         reason != NULL && *reason != '\0' ? reason : "it failed");
}

static void take_card(struct resolution *resolution, const char *text)
{
	json_t *card = json_loads(text, 0, NULL);
	struct wlbd_attempt *attempt = wlbd_attempts_put(resolution->wlbd, card);
	if (attempt != NULL) {
		note_state(attempt, card);
		if (resolution->job_known)
			wlbd_attempts_confirm(resolution->wlbd, attempt->run_pk, &resolution->job);
		else if (!attempt->nodes.allocation_known)
			wlbd_job_poll_soon(resolution->wlbd->job_poll);
		succeed(resolution, attempt);
	} else {
		fail(resolution, 500, "the attempt could not be taken from the database; see wlbd's log");
	}
	json_decref(card);
}

/* ---- questions: the database, Slurm, the database -------------------------------------------------- */

static void on_ensured(void *context, const struct wlbd_db_result *result)
{
	struct resolution *resolution = context;
	if (result->status == WLBD_DB_OK)
		take_card(resolution, result->value);
	else
		fail(resolution, result->http_status, result->message);
}

static void on_job(void *context, const struct wlbd_job_facts *facts)
{
	struct resolution *resolution = context;
	struct wlbd *wlbd = resolution->wlbd;
	struct wlbd_params params = {0};
	if (wlbd->stopping) {
		fail(resolution, 503, "wlbd is stopping; try again");
		return;
	}
	bool privileged = resolution->uid == 0 || resolution->uid == wlbd->slurm_uid;
	if (resolution->uid != facts->uid && !privileged) {
		fail(resolution, 403, "the job belongs to another user");
		return;
	}
	bool known = facts->found == 1;
	resolution->job_known = known;
	resolution->job = facts->job;
	wlbd_params_add_text(&params, resolution->run);
	wlbd_params_add_text(&params, resolution->attempt_id);
	wlbd_params_add_integer(&params, wlbd_run_job_id(resolution->run));
	wlbd_params_add_integer(&params, facts->uid);
	wlbd_params_add_text(&params, facts->user);
	wlbd_params_add_text(&params, wlbd->cluster);
	wlbd_params_add_text(&params, known ? facts->job.name : "");
	wlbd_params_add_integer_if(&params, known, facts->job.submit_time);
	wlbd_params_add_integer(&params, known ? facts->job.restart_count : 0);
	wlbd_db_call(wlbd->writes,
	             "select wlb_attempt_ensure($1, $2, $3, $4, $5, $6, $7, to_timestamp($8::float8), $9::integer)",
	             &params, on_ensured, resolution);
}

static void on_found(void *context, const struct wlbd_db_result *result)
{
	struct resolution *resolution = context;
	if (result->status != WLBD_DB_OK)
		fail(resolution, result->http_status, result->message);
	else if (result->value != NULL)
		take_card(resolution, result->value);
	else
		wlbd_slurm_job(resolution->wlbd, wlbd_run_job_id(resolution->run), resolution->uid, on_job, resolution);
}

static struct resolution *find_same(struct wlbd_call *call, const char *attempt_id)
{
	struct resolution *resolution;
	TAILQ_FOREACH(resolution, &call->wlbd->resolutions->list, link)
	if (resolution->uid == call->uid && strcmp(resolution->run, call->run) == 0 &&
	    strcasecmp(resolution->attempt_id, attempt_id) == 0)
		return resolution;
	return NULL;
}

static struct resolution *begin(struct wlbd_call *call, const char *attempt_id)
{
	struct resolution *resolution = calloc(1, sizeof(*resolution));
	if (resolution == NULL)
		return NULL;
	resolution->wlbd = call->wlbd;
	resolution->uid = call->uid;
	snprintf(resolution->attempt_id, sizeof(resolution->attempt_id), "%s", attempt_id);
	snprintf(resolution->run, sizeof(resolution->run), "%s", call->run);
	TAILQ_INIT(&resolution->waiters);
	TAILQ_INSERT_TAIL(&call->wlbd->resolutions->list, resolution, link);
	return resolution;
}

void wlbd_resolve(struct wlbd_call *call, const char *attempt_id,
                  void (*then)(struct wlbd_call *call, struct wlbd_attempt *attempt))
{
	struct wlbd_attempt *attempt = wlbd_attempts_find(call->wlbd->attempts, attempt_id);
	if (attempt != NULL) {
		deliver(call, attempt, then);
		return;
	}
	if (!wlbd_call_privileged(call) && wlbd_attempts_full(call->wlbd->attempts, call->uid)) {
		wlbd_call_fail(call, 503,
		               "attempt %s: its user has as many attempts as can be watched; try again later",
		               attempt_id);
		return;
	}
	struct resolution *resolution = find_same(call, attempt_id);
	bool is_new = resolution == NULL;
	struct waiter *waiter = calloc(1, sizeof(*waiter));
	if (is_new && waiter != NULL)
		resolution = begin(call, attempt_id);
	if (waiter == NULL || resolution == NULL) {
		free(waiter);
		wlbd_call_fail_memory(call);
		return;
	}
	waiter->call = call;
	waiter->then = then;
	TAILQ_INSERT_TAIL(&resolution->waiters, waiter, link);
	struct wlbd_params params = {0};
	wlbd_params_add_text(&params, attempt_id);
	if (is_new)
		wlbd_db_call(call->wlbd->writes, "select wlb_attempt_find($1)", &params, on_found, resolution);
}

struct wlbd_resolutions *wlbd_resolutions_new(void)
{
	struct wlbd_resolutions *resolutions = calloc(1, sizeof(*resolutions));
	if (resolutions != NULL)
		TAILQ_INIT(&resolutions->list);
	return resolutions;
}

void wlbd_resolutions_free(struct wlbd_resolutions *resolutions)
{
	while (resolutions != NULL && !TAILQ_EMPTY(&resolutions->list))
		fail(TAILQ_FIRST(&resolutions->list), 503, "wlbd is stopping; try again");
	free(resolutions);
}

/* ---- after a restart ------------------------------------------------------------------------------- */

static void on_open_attempts(void *context, const struct wlbd_db_result *result)
{
	struct wlbd *wlbd = context;
	json_t *cards = result->status == WLBD_DB_OK ? json_loads(result->value, 0, NULL) : NULL;
	int found = 0;
	for (size_t i = 0; i < json_array_size(cards); i++) {
		const json_t *card = json_array_get(cards, i);
		const char *uuid = json_string_value(json_object_get(card, "attempt_id"));
		if (uuid == NULL || wlbd_attempts_find(wlbd->attempts, uuid) != NULL)
			continue;
		struct wlbd_attempt *attempt = wlbd_attempts_put(wlbd, card);
		if (attempt == NULL)
			continue;
		attempt->nodes_due_ms = wlb_clock_ms() + wlbd->config.restart_grace_ms;
		found++;
	}
	if (found > 0) {
		wlbd_job_poll_soon(wlbd->job_poll); /* to know which nodes their jobs have */
		wlbd_log(WLBD_LOG_INFO, "%d open attempts; their nodes have %d s to come back", found,
		         wlbd->config.restart_grace_ms / 1000);
	}
	json_decref(cards);
}

void wlbd_resolve_reload(struct wlbd *wlbd)
{
	static const struct wlbd_params none;
	wlbd_db_call(wlbd->writes, "select wlb_attempts_open()", &none, on_open_attempts, wlbd);
}

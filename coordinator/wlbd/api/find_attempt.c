#include "coordinator/wlbd/api/find_attempt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "coordinator/wlbd/api/run_change.h"
#include "coordinator/wlbd/database/db_pool.h"
#include "coordinator/wlbd/http/question_share.h"
#include "coordinator/wlbd/http/reply.h"
#include "coordinator/wlbd/incident/attempt_end.h"
#include "coordinator/wlbd/incident/unreported_nodes.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/slurm/job_params.h"
#include "coordinator/wlbd/slurm/job_poll.h"
#include "coordinator/wlbd/wlbd.h"

/* A request that waits for a search. */
struct waiter {
	TAILQ_ENTRY(waiter) link;
	struct wlbd_request *request;
	void (*then)(struct wlbd_request *request, struct wlbd_attempt *attempt);
};

struct search {
	TAILQ_ENTRY(search) link;
	struct wlbd *wlbd;
	char attempt_id[37];
	char run[WLBD_RUN_NAME_SIZE];
	uid_t uid;      /* of the clients that wait */
	bool is_live;   /* they are processes of the attempt, and store no records */
	bool job_known; /* Slurm knows the job, which is this: */
	struct wlb_slurm_job job;
	TAILQ_HEAD(, waiter) waiters;
};

enum { RELOAD_AGAIN_S = 1, RELOAD_TRIES_MAX = 5 };

/* After wlbd was started, the open attempts are loaded one by one: a statement for all of them would take too long. */
struct reload {
	int64_t began_ms;
	json_t *ids;  /* NULL: not known yet */
	size_t next;  /* of these */
	int tries;    /* of it that failed */
	size_t found; /* attempts that are in memory since then, and have not ended */
	struct event *again;
};

struct wlbd_attempt_searches {
	TAILQ_HEAD(, search) list;
	struct reload reload;
};

/* ---- results --------------------------------------------------------------------------------------- */

/* Returns 0 where the client may act on an attempt of that owner and run; else the status, with the reason. */
static int check_client(const struct wlbd_request *request, const char *attempt_id, json_int_t owner, const char *run,
                        struct wlb_error *error)
{
	int status = 0;
	if ((json_int_t)request->uid != owner && !wlbd_request_privileged(request)) {
		status = 403;
		wlb_fail(error, "run %s belongs to another user", run);
	} else if (strcmp(request->run, run) != 0) {
		status = 400;
		wlb_fail(error, "attempt %s belongs to run %s, not to run %s", attempt_id, run, request->run);
	}
	return status;
}

/* Returns 0 where one more attempt of the client may be in memory; else the status, with the reason. */
static int check_space(const struct wlbd_request *request, const char *attempt_id, struct wlb_error *error)
{
	if (wlbd_request_privileged(request) || !wlbd_attempts_full(request->wlbd->attempts, request->uid, true))
		return 0;
	wlb_fail(error, "attempt %s: its user has the most attempts that can be watched; try again later", attempt_id);
	return 503;
}

static void pass_attempt(struct wlbd_request *request, struct wlbd_attempt *attempt,
                         void (*then)(struct wlbd_request *request, struct wlbd_attempt *attempt))
{
	struct wlb_error error = {0};
	int status = check_client(request, attempt->uuid, attempt->uid, attempt->run, &error);
	if (status != 0)
		wlbd_request_fail(request, status, "%s", error.message);
	else
		then(request, attempt);
}

static void search_end(struct search *search)
{
	TAILQ_REMOVE(&search->wlbd->searches->list, search, link);
	wlb_slurm_job_free(&search->job);
	free(search);
}

static void succeed(struct search *search, struct wlbd_attempt *attempt)
{
	struct waiter *waiter;
	while ((waiter = TAILQ_FIRST(&search->waiters)) != NULL) {
		TAILQ_REMOVE(&search->waiters, waiter, link);
		pass_attempt(waiter->request, attempt, waiter->then);
		free(waiter);
	}
	search_end(search);
}

static void fail(struct search *search, int status, const char *message)
{
	struct waiter *waiter;
	while ((waiter = TAILQ_FIRST(&search->waiters)) != NULL) {
		TAILQ_REMOVE(&search->waiters, waiter, link);
		wlbd_request_fail(waiter->request, status, "%s", message);
		free(waiter);
	}
	search_end(search);
}

/* What any client may name, but not act on, must not be taken into memory: there it would count as its owner's. Returns
 * as check_client. */
static int check_attempt_json(const struct search *search, const json_t *attempt_json, struct wlb_error *error)
{
	const struct wlbd_request *request =
		TAILQ_FIRST(&search->waiters)->request; /* all are of one user and for one run */
	const json_t *owner = json_object_get(attempt_json, "uid");
	const char *run = json_string_value(json_object_get(attempt_json, "run"));
	int status = 0;
	if (json_is_integer(owner) && run != NULL)
		status = check_client(request, search->attempt_id, json_integer_value(owner), run, error);
	const char *state = json_string_value(json_object_get(attempt_json, "state"));
	/* Processes of one that failed, on a node that was frozen, are still to be ordered to end. */
	bool is_failed = state != NULL && strcmp(state, "failed") == 0;
	if (status == 0 && search->is_live && !is_failed &&
	    json_is_true(json_object_get(attempt_json, "is_run_over"))) {
		wlb_fail(error, "run %s has ended, and nothing of it is watched any more", search->run);
		return 409;
	}
	/* Searches that were begun together each found space for one. */
	return status != 0 ? status : check_space(request, search->attempt_id, error);
}

/* Nothing of it is watched. What its late records say is judged first. */
static void leave_memory(struct wlbd_attempt *attempt)
{
	attempt->is_run_over = true;
	if (TAILQ_EMPTY(&attempt->questions) && !wlbd_attempt_end_is_pending(attempt))
		wlbd_attempts_remove(attempt->wlbd, attempt);
}

static void use_attempt(struct search *search, struct wlbd_attempt *attempt, const json_t *attempt_json)
{
	bool is_run_over = json_is_true(json_object_get(attempt_json, "is_run_over"));
	wlbd_attempt_end_restore(attempt, attempt_json);
	wlbd_attempt_end_older(search->wlbd, attempt);
	if (search->job_known)
		wlbd_attempts_confirm(search->wlbd, attempt->run_pk, &search->job);
	else if (!attempt->nodes.allocation_known)
		wlbd_job_poll_soon(search->wlbd->job_poll, attempt->job_id, false);
	succeed(search, attempt);
	if (is_run_over)
		leave_memory(attempt);
}

static void use_attempt_json(struct search *search, const char *text)
{
	struct wlb_error error = {0};
	json_t *attempt_json = json_loads(text, 0, NULL);
	int status = check_attempt_json(search, attempt_json, &error);
	struct wlbd_attempt *attempt = status == 0 ? wlbd_attempts_put(search->wlbd, attempt_json) : NULL;
	if (status != 0) {
		fail(search, status, error.message);
	} else if (attempt != NULL) {
		use_attempt(search, attempt, attempt_json);
	} else {
		fail(search, 500, "the attempt cannot be read from the database; see wlbd's log");
	}
	json_decref(attempt_json);
}

/* ---- the search: the database, Slurm, the database -------------------------------------------------- */

static void on_ensured(void *context, const struct wlbd_db_result *result)
{
	struct search *search = context;
	if (result->status == WLBD_DB_OK)
		use_attempt_json(search, result->value);
	else
		fail(search, result->http_status, result->message);
}

static void on_job(void *context, const struct wlbd_job_facts *facts)
{
	struct search *search = context;
	struct wlbd *wlbd = search->wlbd;
	struct wlbd_params params = {0};
	if (wlbd->stopping) {
		fail(search, 503, "wlbd is stopping; try again");
		return;
	}
	bool privileged = search->uid == 0 || search->uid == wlbd->slurm_uid;
	if (search->uid != facts->uid && !privileged) {
		fail(search, 403, "the job belongs to another user");
		return;
	}
	bool known = facts->found == 1;
	search->job_known = known && wlb_slurm_job_copy(&search->job, &facts->job, NULL) == 0;
	wlbd_params_add_text(&params, search->run);
	wlbd_params_add_text(&params, search->attempt_id);
	wlbd_params_add_integer(&params, wlbd_run_job_id(search->run));
	wlbd_params_add_integer(&params, facts->uid);
	wlbd_params_add_text(&params, facts->user);
	wlbd_params_add_text(&params, wlbd->cluster);
	wlbd_params_add_text(&params, known ? facts->job.name : "");
	wlbd_params_add_integer_if(&params, known, facts->job.submit_time);
	wlbd_params_add_integer(&params, known ? facts->job.restart_count : 0);
	wlbd_params_add_boolean(&params, known && strcmp(facts->job.state, "PENDING") == 0);
	wlbd_params_add_boolean(&params, facts->found == 0 || (known && facts->job.finished));
	wlbd_params_add_boolean(&params, search->is_live);
	wlbd_params_add_job(&params, known ? &facts->job : NULL);
	wlbd_run_change(wlbd, search->uid, wlbd_run_job_id(search->run),
	                "select wlb_attempt_ensure($1, $2, $3, $4, $5, $6, $7, to_timestamp($8::float8), $9::integer, "
	                "$10::boolean, $11::boolean, $12::boolean, $13, $14, $15)",
	                &params, on_ensured, search);
}

static void on_found(void *context, const struct wlbd_db_result *result)
{
	struct search *search = context;
	if (result->status != WLBD_DB_OK)
		fail(search, result->http_status, result->message);
	else if (result->value != NULL)
		use_attempt_json(search, result->value);
	else
		wlbd_slurm_job(search->wlbd, wlbd_run_job_id(search->run), search->uid, on_job, search);
}

static struct search *find_same(struct wlbd_request *request, const char *attempt_id, bool is_live)
{
	struct search *search;
	TAILQ_FOREACH(search, &request->wlbd->searches->list, link)
	if (search->uid == request->uid && search->is_live == is_live && strcmp(search->run, request->run) == 0 &&
	    strcasecmp(search->attempt_id, attempt_id) == 0)
		return search;
	return NULL;
}

static struct search *begin(struct wlbd_request *request, const char *attempt_id, bool is_live)
{
	struct search *search = calloc(1, sizeof(*search));
	if (search == NULL)
		return NULL;
	search->wlbd = request->wlbd;
	search->uid = request->uid;
	search->is_live = is_live;
	snprintf(search->attempt_id, sizeof(search->attempt_id), "%s", attempt_id);
	snprintf(search->run, sizeof(search->run), "%s", request->run);
	TAILQ_INIT(&search->waiters);
	TAILQ_INSERT_TAIL(&request->wlbd->searches->list, search, link);
	return search;
}

static void find(struct wlbd_request *request, const char *attempt_id, bool is_live,
                 void (*then)(struct wlbd_request *request, struct wlbd_attempt *attempt))
{
	struct wlb_error error = {0};
	struct wlbd_attempt *attempt = wlbd_attempts_find(request->wlbd->attempts, attempt_id);
	if (attempt != NULL) {
		pass_attempt(request, attempt, then);
		return;
	}
	int status = check_space(request, attempt_id, &error);
	if (status != 0) {
		wlbd_request_fail(request, status, "%s", error.message);
		return;
	}
	struct search *search = find_same(request, attempt_id, is_live);
	bool is_new = search == NULL;
	if (is_new && wlbd_question_share_take(request) != 0)
		return;
	struct waiter *waiter = calloc(1, sizeof(*waiter));
	if (is_new && waiter != NULL)
		search = begin(request, attempt_id, is_live);
	if (waiter == NULL || search == NULL) {
		free(waiter);
		wlbd_request_fail_memory(request);
		return;
	}
	waiter->request = request;
	waiter->then = then;
	TAILQ_INSERT_TAIL(&search->waiters, waiter, link);
	struct wlbd_params params = {0};
	wlbd_params_add_text(&params, attempt_id);
	if (is_new)
		wlbd_db_pool_execute(request->wlbd->questions, request->uid, 0, "select wlb_attempt_find($1)", &params,
		                     on_found, search);
}

void wlbd_find_attempt(struct wlbd_request *request, const char *attempt_id,
                       void (*then)(struct wlbd_request *request, struct wlbd_attempt *attempt))
{
	find(request, attempt_id, false, then);
}

void wlbd_find_live_attempt(struct wlbd_request *request, const char *attempt_id,
                            void (*then)(struct wlbd_request *request, struct wlbd_attempt *attempt))
{
	find(request, attempt_id, true, then);
}

struct wlbd_attempt_searches *wlbd_attempt_searches_new(void)
{
	struct wlbd_attempt_searches *searches = calloc(1, sizeof(*searches));
	if (searches != NULL)
		TAILQ_INIT(&searches->list);
	return searches;
}

void wlbd_attempt_searches_free(struct wlbd_attempt_searches *searches)
{
	if (searches == NULL)
		return;
	while (!TAILQ_EMPTY(&searches->list))
		fail(TAILQ_FIRST(&searches->list), 503, "wlbd is stopping; try again");
	json_decref(searches->reload.ids);
	if (searches->reload.again != NULL)
		event_free(searches->reload.again);
	free(searches);
}

/* ---- after a restart ------------------------------------------------------------------------------- */

static void load_next(struct wlbd *wlbd);

static void on_reload_again(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	load_next(context);
}

/* Where the connection is lost, all of it begins anew with the next one. */
static void reload_later(struct wlbd *wlbd, const struct wlbd_db_result *result)
{
	static const struct timeval later = {RELOAD_AGAIN_S, 0};
	if (!wlbd_db_ready(wlbd->writes))
		return;
	wlbd_log_limited(WLBD_LOG_WARNING, WLBD_LIMIT_DATABASE,
	                 "open attempts are not all in memory yet, and wlbd asks for them again in %d s: %s",
	                 RELOAD_AGAIN_S, result->status != WLBD_DB_OK ? result->detail : "out of memory");
	event_add(wlbd->searches->reload.again, &later);
}

static void end_reload(struct wlbd *wlbd)
{
	struct reload *reload = &wlbd->searches->reload;
	json_decref(reload->ids);
	reload->ids = NULL;
	wlbd_job_poll_all(wlbd->job_poll);
	if (reload->found == 0)
		return;
	wlbd_log(WLBD_LOG_INFO, "%zu open attempts; their nodes have %d s to report", reload->found,
	         wlbd->config.restart_grace_ms / 1000);
}

/* A report may have brought the attempt into memory meanwhile; an attempt that was there before was known to this wlbd.
 */
static void load_attempt_json(struct wlbd *wlbd, const char *text)
{
	struct reload *reload = &wlbd->searches->reload;
	json_t *attempt_json = text != NULL ? json_loads(text, 0, NULL) : NULL;
	const char *uuid = json_string_value(json_object_get(attempt_json, "attempt_id"));
	struct wlbd_attempt *attempt = uuid != NULL ? wlbd_attempts_find(wlbd->attempts, uuid) : NULL;
	if (uuid != NULL && attempt == NULL) {
		attempt = wlbd_attempts_put(wlbd, attempt_json);
		if (attempt != NULL)
			wlbd_attempt_end_restore(attempt, attempt_json);
	}
	if (attempt != NULL && attempt->made_ms >= reload->began_ms &&
	    !wlbd_attempt_has_ended(&attempt->incident.life)) {
		wlbd_unreported_nodes_expect(attempt);
		wlbd_job_poll_soon(wlbd->job_poll, attempt->job_id, false); /* to find which nodes it has */
		reload->found++;
	}
	json_decref(attempt_json);
}

/* An attempt that would fail to load again is left to the reports of its processes; the connection has logged why. */
static void on_open_attempt(void *context, const struct wlbd_db_result *result)
{
	struct wlbd *wlbd = context;
	struct reload *reload = &wlbd->searches->reload;
	bool is_tried = result->status != WLBD_DB_BUSY && wlbd_db_ready(wlbd->writes);
	if (result->status == WLBD_DB_OK)
		load_attempt_json(wlbd, result->value);
	reload->tries += is_tried;
	if (result->status == WLBD_DB_OK || result->status == WLBD_DB_REFUSED || result->status == WLBD_DB_DAMAGED ||
	    reload->tries >= RELOAD_TRIES_MAX) {
		reload->tries = 0;
		reload->next++;
		load_next(wlbd);
	} else {
		reload_later(wlbd, result);
	}
}

static void on_open_ids(void *context, const struct wlbd_db_result *result)
{
	struct wlbd *wlbd = context;
	json_t *ids = result->status == WLBD_DB_OK ? json_loads(result->value, 0, NULL) : NULL;
	wlbd->searches->reload.ids = ids;
	if (ids != NULL)
		load_next(wlbd);
	else
		reload_later(wlbd, result);
}

static void load_next(struct wlbd *wlbd)
{
	struct reload *reload = &wlbd->searches->reload;
	struct wlbd_params params = {0};
	if (reload->ids == NULL) {
		wlbd_db_execute(wlbd->writes, "select wlb_attempts_open()", &params, on_open_ids, wlbd);
	} else if (reload->next < json_array_size(reload->ids)) {
		wlbd_params_add_integer(&params, json_integer_value(json_array_get(reload->ids, reload->next)));
		wlbd_db_execute(wlbd->writes, "select wlb_attempt_json($1)", &params, on_open_attempt, wlbd);
	} else {
		end_reload(wlbd);
	}
}

void wlbd_attempts_reload(struct wlbd *wlbd)
{
	struct reload *reload = &wlbd->searches->reload;
	if (reload->again == NULL)
		reload->again = evtimer_new(wlbd->base, on_reload_again, wlbd);
	if (reload->again == NULL) {
		wlbd_log(WLBD_LOG_ERROR, "out of memory: open attempts are watched only once their processes report");
		return;
	}
	event_del(reload->again);
	json_decref(reload->ids);
	*reload = (struct reload){.again = reload->again, .began_ms = wlb_clock_ms()};
	load_next(wlbd);
}

#include "coordinator/wlbd/api/runs/queries.h"

#include <stdlib.h>
#include <string.h>

#include "coordinator/wlbd/api/handlers.h"
#include "coordinator/wlbd/budget.h"
#include "coordinator/wlbd/database/query.h"
#include "coordinator/wlbd/http/fields.h"
#include "coordinator/wlbd/http/long_reply.h"
#include "coordinator/wlbd/http/reply.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/wlbd.h"

enum {
	THREADS = 2, /* each has one connection */
	QUERIES_MAX = 8,
	TIMEOUT_FACTOR = 5,   /* over database_timeout_ms, as of GET requests */
	LIMIT_MAX_MS = 20000, /* wlb waits 30 s for a reply */
};

struct wlbd_queries {
	struct wlbd_thread_pool *threads;
	struct wlbd_budget *places; /* one for each user */
	_Atomic bool end;
};

struct query_task {
	struct wlbd_task task; /* first */
	struct wlbd_request *request;
	struct wlbd_query query;
};

struct wlbd_queries *wlbd_queries_new(struct event_base *base, struct wlb_error *error)
{
	static const struct wlbd_budget_limits limits = {.user_count = 1, .all_count = QUERIES_MAX};
	struct wlbd_queries *queries = calloc(1, sizeof(*queries));
	if (queries != NULL)
		queries->places = wlbd_budget_new(&limits);
	if (queries != NULL && queries->places != NULL)
		queries->threads = wlbd_thread_pool_new(base, "queries", THREADS, QUERIES_MAX, error);
	else
		wlb_fail(error, "out of memory");
	if (queries != NULL && queries->threads != NULL)
		return queries;
	wlbd_queries_free(queries);
	return NULL;
}

void wlbd_queries_free(struct wlbd_queries *queries)
{
	if (queries == NULL)
		return;
	queries->end = true;
	wlbd_thread_pool_free(queries->threads);
	wlbd_budget_free(queries->places);
	free(queries);
}

/* Before the reply, after which the request is no longer there. */
static void leave_place(const struct query_task *task)
{
	wlbd_budget_leave(task->request->wlbd->queries->places, task->request->uid);
}

static void task_free(struct query_task *task)
{
	free(task->query.sql);
	free(task->query.reply);
	free(task);
}

static void run_query(struct wlbd_task *task)
{
	wlbd_query_run(&((struct query_task *)task)->query);
}

static void finish_query(struct wlbd_task *task)
{
	struct query_task *done = (struct query_task *)task;
	struct wlbd_request *request = done->request;
	leave_place(done);
	if (done->query.detail[0] != '\0')
		wlbd_log_limited(WLBD_LOG_WARNING, WLBD_LIMIT_DATABASE, "query_database: %s", done->query.detail);
	if (done->query.reply != NULL)
		wlbd_request_reply_long(request, done->query.reply);
	else
		wlbd_request_fail(request, done->query.status, "%s", done->query.error.message);
	task_free(done);
}

static void discard_query(struct wlbd_task *task)
{
	struct query_task *discarded = (struct query_task *)task;
	leave_place(discarded);
	wlbd_request_fail(discarded->request, 503, "too many queries are under way; try again");
	task_free(discarded);
}

/* Answers, and returns -1, where nobody may ask, or the user not now. */
static int take_place(struct wlbd_request *request)
{
	const struct wlbd_config *config = &request->wlbd->config;
	if (config->private_data) {
		wlbd_request_fail(
			request, 403,
			"queries read the runs of all users, which private_data = yes in wlbd.conf hides; wlb "
			"runs, show, compare and steps read your own");
		return -1;
	}
	if (config->query_database[0] == '\0') {
		wlbd_request_fail(request, 403,
		                  "queries are not set up: an administrator makes a login that reads the views (wlb db "
		                  "reader), and names it as query_database in wlbd.conf");
		return -1;
	}
	if (wlbd_budget_enter(request->wlbd->queries->places, request->uid) == WLBD_BUDGET_TAKEN)
		return 0;
	wlbd_request_fail(request, 503, "a query of yours is under way, or %d of all users; try again when it is done",
	                  QUERIES_MAX);
	return -1;
}

void wlbd_post_query(struct wlbd_request *request)
{
	struct wlb_error error = {0};
	const char *sql = NULL;
	if (wlbd_field_text(request->body, "sql", WLBD_REQUIRED, WLBD_QUERY_SQL_MAX, &sql, &error) != 0) {
		wlbd_request_fail(request, 400, "%s", error.message);
		return;
	}
	if (take_place(request) != 0)
		return;
	struct wlbd *wlbd = request->wlbd;
	int limit_ms = wlbd->config.database_timeout_ms * TIMEOUT_FACTOR;
	struct query_task *task = calloc(1, sizeof(*task));
	if (task == NULL || (task->query.sql = strdup(sql)) == NULL) {
		free(task);
		wlbd_budget_leave(wlbd->queries->places, request->uid);
		wlbd_request_fail_memory(request);
		return;
	}
	task->task = (struct wlbd_task){
		.run = run_query, .done = finish_query, .discard = discard_query, .owner = request->uid};
	task->request = request;
	task->query.conninfo = wlbd->config.query_database;
	task->query.limit_ms = limit_ms < LIMIT_MAX_MS ? limit_ms : LIMIT_MAX_MS;
	task->query.end = &wlbd->queries->end;
	wlbd_thread_pool_submit(wlbd->queries->threads, &task->task);
}

/* GET: the database makes the JSON, wlbd passes it on. */
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/wlbd/database/db_pool.h"
#include "coordinator/wlbd/requests/handlers.h"
#include "coordinator/wlbd/wlbd.h"

enum {
	RUNS_LIMIT = 100, /* where the caller does not say */
	STEPS_LIMIT = 1000,
	ROWS_MOST = 100000, /* that may be asked for; sql/migrations gives at most 10,000 */
	POINTS_MOST = 2000,
};

void wlbd_get_health(struct wlbd_call *call)
{
	const struct wlbd *wlbd = call->wlbd;
	bool ok =
		wlbd_db_ready(wlbd->writes) && wlbd_db_pool_ready(wlbd->deliveries) && wlbd_db_pool_ready(wlbd->reads);
	const char *reason = wlbd_db_reason(wlbd->writes);
	wlbd_call_reply(call, ok ? 200 : 503,
	                json_pack("{s:s, s:s, s:s}", "status", ok ? "ok" : "degraded", "version", WLB_VERSION,
	                          "database",
	                          ok                ? "ok"
	                          : *reason != '\0' ? reason
	                                            : "not connected yet"));
}

void wlbd_get_metrics(struct wlbd_call *call)
{
	struct evbuffer *out = evbuffer_new();
	wlbd_metrics_write(call->wlbd, out);
	wlbd_call_reply_buffer(call, "text/plain; version=0.0.4", out);
}

static void on_read(void *context, const struct wlbd_db_result *result)
{
	struct wlbd_call *call = context;
	if (result->status == WLBD_DB_OK)
		wlbd_call_reply_text(call, 200, result->value);
	else
		wlbd_call_fail_db(call, result);
}

static void ask(struct wlbd_call *call, const char *sql, int count, const char *const *params)
{
	wlbd_db_pool_call(call->wlbd->reads, call->uid, 0, sql, count, params, on_read, call);
}

/* The uid a row must have to be read by the caller; NULL: any. */
static const char *reader(const struct wlbd_call *call, char text[16])
{
	if (!call->wlbd->config.private_data || wlbd_call_privileged(call))
		return NULL;
	snprintf(text, 16, "%u", call->uid);
	return text;
}

/* A whole number from `least` to `most`; `text` stays where the caller does not say one. Answers 400 itself. */
static int parameter_number(struct wlbd_call *call, const char *name, long long least, long long most, char text[24])
{
	const char *value = wlbd_call_parameter(call, name);
	char *end;
	if (value == NULL)
		return 0;
	long long number = strtoll(value, &end, 10);
	if (*end != '\0' || number < least || number > most) {
		wlbd_call_fail(call, 400, "parameter '%s': '%.60s' must be a whole number from %lld to %lld", name,
		               value, least, most);
		return -1;
	}
	snprintf(text, 24, "%lld", number);
	return 0;
}

void wlbd_get_runs(struct wlbd_call *call)
{
	char uid[16], limit[24];
	snprintf(limit, sizeof(limit), "%d", RUNS_LIMIT);
	if (parameter_number(call, "limit", 0, ROWS_MOST, limit) != 0)
		return;
	const char *params[] = {reader(call, uid), wlbd_call_parameter(call, "user"),
	                        wlbd_call_parameter(call, "state"), limit};
	ask(call, "select wlb_runs_json($1, $2, $3, $4)", 4, params);
}

void wlbd_get_run(struct wlbd_call *call)
{
	char uid[16], asker[16];
	const char *steps = wlbd_call_parameter(call, "steps");
	if (steps != NULL && strcmp(steps, "all") != 0) {
		wlbd_call_fail(call, 400, "parameter 'steps': '%.60s' must be all; without it the steps are left out",
		               steps);
		return;
	}
	snprintf(asker, sizeof(asker), "%u", call->uid);
	const char *params[] = {call->run, reader(call, uid), steps != NULL ? "t" : "f", asker};
	ask(call, "select wlb_run_json($1, $2, $3, $4)", 4, params);
}

void wlbd_get_steps(struct wlbd_call *call)
{
	char uid[16], asker[16];
	char from[24] = "0";
	char limit[24];
	char points[24] = "";
	snprintf(limit, sizeof(limit), "%d", STEPS_LIMIT);
	if (parameter_number(call, "from", 0, INT64_MAX, from) != 0 ||
	    parameter_number(call, "limit", 0, ROWS_MOST, limit) != 0 ||
	    parameter_number(call, "points", 1, POINTS_MOST, points) != 0)
		return;
	snprintf(asker, sizeof(asker), "%u", call->uid);
	const char *params[] = {call->run, reader(call, uid), from, limit, points[0] != '\0' ? points : NULL, asker};
	ask(call, "select wlb_run_steps_json($1, $2, $3, $4, $5, $6)", 6, params);
}

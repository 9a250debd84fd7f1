/* POST /v1/runs/RUN/report: each second from every node, so nothing here asks the database. */
#include <stdio.h>
#include <string.h>

#include "coordinator/wlbd/fields.h"
#include "coordinator/wlbd/handlers.h"
#include "coordinator/wlbd/outbox.h"
#include "coordinator/wlbd/resolve.h"
#include "coordinator/wlbd/verdict.h"
#include "coordinator/wlbd/wlbd.h"

struct report {
	const char *attempt_id;
	const char *source;
	const char *node;
	int64_t rank;
	int64_t step;
	const json_t *lost_ranks;
	const char *step_id;
	bool goodbye;
};

static int check_lost(const json_t *lost, struct wlb_error *error)
{
	int64_t rank;
	for (size_t i = 0; i < json_array_size(lost); i++) {
		const json_t *entry = json_array_get(lost, i);
		if (!json_is_object(entry))
			return wlb_fail(error, "lost_ranks[%zu]: must be an object", i);
		if (wlbd_field_integer(entry, "rank", WLBD_REQUIRED, 0, WLBD_RANKS_MOST, &rank, error) != 0)
			return wlb_fail_in(error, "lost_ranks[%zu]", i);
	}
	return 0;
}

static int read_report(const json_t *body, struct report *report, struct wlb_error *error)
{
	static const char *const sources[] = {"node", "run", NULL};
	*report = (struct report){.rank = WLBD_LAUNCHER};
	if (wlbd_field_uuid(body, "attempt_id", &report->attempt_id, error) != 0 ||
	    wlbd_field_choice(body, "source", WLBD_REQUIRED, sources, &report->source, error) != 0 ||
	    wlbd_field_text(body, "node", WLBD_REQUIRED, WLBD_NAME_MOST, &report->node, error) != 0 ||
	    wlbd_field_integer(body, "rank", WLBD_OPTIONAL, WLBD_LAUNCHER, WLBD_RANKS_MOST, &report->rank, error) !=
	            0 ||
	    wlbd_field_integer(body, "step", WLBD_OPTIONAL, 0, INT64_MAX, &report->step, error) != 0 ||
	    wlbd_field_array(body, "lost_ranks", WLBD_OPTIONAL, WLBD_RANKS_MOST, &report->lost_ranks, error) != 0 ||
	    wlbd_field_text(body, "step_id", WLBD_OPTIONAL, 31, &report->step_id, error) != 0 ||
	    wlbd_field_boolean(body, "goodbye", WLBD_OPTIONAL, &report->goodbye, error) != 0 ||
	    check_lost(report->lost_ranks, error) != 0)
		return -1;
	bool launcher = strcmp(report->source, "run") == 0;
	if (launcher)
		report->rank = WLBD_LAUNCHER;
	else if (report->rank == WLBD_LAUNCHER)
		return wlb_fail(error, "field 'rank': is missing; a node's reporter is one of its ranks");
	return 0;
}

/* The step's id survives a restart of wlbd, which may have to end the step. */
static void note_step(struct wlbd_attempt *attempt, const char *slurm_step)
{
	char pk[24];
	if (slurm_step == NULL || strcmp(attempt->slurm_step, slurm_step) == 0)
		return;
	snprintf(attempt->slurm_step, sizeof(attempt->slurm_step), "%s", slurm_step);
	snprintf(pk, sizeof(pk), "%lld", (long long)attempt->attempt_pk);
	const char *params[] = {pk, slurm_step};
	wlbd_outbox_put(attempt->wlbd->outbox, "update attempts set slurm_step = $2 where id = $1", 2, params);
}

static void take(struct wlbd_attempt *attempt, struct wlbd_reporter *reporter, const struct report *report,
                 struct evhttp_connection *connection)
{
	if (report->step > reporter->step)
		reporter->step = report->step;
	if (reporter->rank == WLBD_LAUNCHER)
		note_step(attempt, report->step_id);
	wlbd_verdict_alive(reporter, connection);
	for (size_t i = 0; i < json_array_size(report->lost_ranks); i++) {
		const json_t *rank = json_object_get(json_array_get(report->lost_ranks, i), "rank");
		wlbd_verdict_rank_gone(reporter, (int)json_integer_value(rank));
	}
	if (report->goodbye)
		wlbd_verdict_goodbye(reporter);
}

/* Proved only where the reporter takes it for a receipt: what it told will not be told again. */
static void go_on(struct wlbd_call *call, const struct report *report)
{
	call->plain = json_array_size(json_object_get(call->body, "lost_ranks")) == 0 &&
	              json_array_size(json_object_get(call->body, "exits")) == 0 && !report->goodbye;
	wlbd_call_reply(call, 200, json_pack("{s:s}", "order", "continue"));
}

static void answer(struct wlbd_call *call, struct wlbd_attempt *attempt)
{
	struct report report;
	struct wlb_error error = {0};
	if (read_report(call->body, &report, &error) != 0) {
		wlbd_call_fail(call, 400, "%s", error.message);
		return;
	}
	struct wlbd_reporter *reporter = wlbd_attempt_reporter(attempt, report.node, (int)report.rank);
	if (reporter == NULL) {
		wlbd_call_fail(call, 503, "out of memory; try again");
		return;
	}
	take(attempt, reporter, &report, evhttp_request_get_connection(call->request));
	call->wlbd->metrics.reports++;
	if (attempt->order_end)
		wlbd_call_reply(call, 200, json_pack("{s:s, s:s}", "order", "end", "reason", attempt->reason));
	else
		go_on(call, &report);
}

void wlbd_post_report(struct wlbd_call *call)
{
	struct report report;
	struct wlb_error error = {0};
	if (read_report(call->body, &report, &error) != 0)
		wlbd_call_fail(call, 400, "%s", error.message);
	else
		wlbd_resolve(call, report.attempt_id, answer);
}

/* wlb runs: lists runs, as squeue and sacct list jobs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/output/printable.h"
#include "common/output/table.h"
#include "coordinator/wlb/api.h"
#include "coordinator/wlb/commands.h"
#include "coordinator/wlb/delivery/pending.h"
#include "coordinator/wlb/output/reply_fields.h"
#include "coordinator/wlb/output/time_format.h"

enum { LIMIT_MAX = 10000 }; /* of the coordinator, too */

static void format_step(const json_t *run, char *text, size_t size)
{
	char step[48], counted[32], all[32], missing_text[40] = "";
	json_int_t missing = json_integer_value(json_object_get(run, "steps_missing"));
	wlb_field_number(run, "last_step", step, sizeof(step));
	wlb_field_number(run, "step_of_attempt", counted, sizeof(counted));
	if (strcmp(step, "-") == 0 && strcmp(counted, "-") != 0)
		snprintf(step, sizeof(step), "%s of attempt", counted);
	wlb_field_number(run, "train_iters", all, sizeof(all));
	if (missing > 0)
		snprintf(missing_text, sizeof(missing_text), " (%lld missing)", (long long)missing);
	if (strcmp(all, "-") == 0)
		snprintf(text, size, "%s%s", step, missing_text);
	else
		snprintf(text, size, "%s/%s%s", step, all, missing_text);
}

static void format_times(const json_t *run, char *started, char *elapsed, size_t size)
{
	time_t begin = wlb_time_parse(wlb_field_text(run, "started_at", NULL));
	time_t end = wlb_time_parse(wlb_field_text(run, "ended_at", NULL));
	wlb_time_format(begin, started, size);
	if (end == (time_t)-1)
		end = time(NULL);
	wlb_duration_format(begin == (time_t)-1 ? -1 : (long)(end - begin), elapsed, size);
}

static void add_run(struct wlb_table *table, const json_t *run)
{
	char name[80], nodes[256], layout[64], step[128], loss[32], attempts[32], started[32], elapsed[32];
	wlb_field_run(run, name, sizeof(name));
	wlb_field_nodes(run, nodes, sizeof(nodes));
	wlb_field_layout(run, layout, sizeof(layout));
	format_step(run, step, sizeof(step));
	wlb_field_real(run, "last_loss", 4, loss, sizeof(loss));
	wlb_field_number(run, "attempts", attempts, sizeof(attempts));
	format_times(run, started, elapsed, sizeof(started));
	wlb_table_add(table, (const char *const[]){name, wlb_field_text(run, "job_name", "-"),
	                                           wlb_field_text(run, "user", "-"), wlb_field_text(run, "state", "-"),
	                                           nodes, layout, step, loss, attempts, started, elapsed});
}

static int print_runs(const json_t *reply, size_t limit)
{
	static const char *const titles[] = {"RUN",  "NAME", "USER",     "STATE",   "NODES",  "LAYOUT",
	                                     "STEP", "LOSS", "ATTEMPTS", "STARTED", "ELAPSED"};
	struct wlb_table table = {.columns = 11, .right = "llllllrrrlr"};
	const json_t *runs = json_object_get(reply, "runs"), *run;
	size_t i;
	wlb_table_add(&table, titles);
	json_array_foreach(runs, i, run) if (i < limit) add_run(&table, run);
	int rc = wlb_table_print(&table, "", stdout);
	if (rc == 0 && (json_array_size(runs) > limit || json_integer_value(json_object_get(reply, "left_out")) > 0))
		puts("older runs are not listed; --limit, --user, --state and --tag choose others");
	return rc;
}

struct request {
	const char *user;
	const char *state;
	const char *tag;
	int limit;
	bool json;
};

static int list_runs(void *values, struct wlb_error *error)
{
	const struct request *request = values;
	char path[1024] = "/v1/runs", limit[16];
	wlb_pending_deliver();
	/* The table asks for one run more than it prints, to know whether there are more. */
	snprintf(limit, sizeof(limit), "%d",
	         request->json || request->limit == LIMIT_MAX ? request->limit : request->limit + 1);
	wlb_api_query(path, sizeof(path), "limit", limit);
	if (request->user != NULL)
		wlb_api_query(path, sizeof(path), "user", request->user);
	if (request->state != NULL)
		wlb_api_query(path, sizeof(path), "state", request->state);
	if (request->tag != NULL)
		wlb_api_query(path, sizeof(path), "tag", request->tag);
	json_t *reply = wlb_api_get(path, error);
	if (reply == NULL)
		return WLB_EXIT_FAILED;
	if (request->json)
		return wlb_json_print_report(reply, error) == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
	int rc = wlb_make_printable(reply);
	if (rc == 0)
		rc = print_runs(reply, (size_t)request->limit);
	json_decref(reply);
	if (rc != 0)
		wlb_fail(error, "out of memory for the list");
	return rc == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
}

#define FIELD(name) offsetof(struct request, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(TEXT, "user", FIELD(user), "NAME", "only this user's runs")},
	{WLB_OPTION(TEXT, "state", FIELD(state), NULL, "only runs in this state"),
         .choices = "starting|running|restarting|complete|failed|out_of_nodes|cancelled"},
	{WLB_OPTION(TEXT, "tag", FIELD(tag), "TAG", "only runs with this tag (wlb tag)")},
	{WLB_OPTION(INT, "limit", FIELD(limit), "N", "at most N runs"), .min = 1, .max = LIMIT_MAX, .initial = "50"},
	{WLB_OPTION(FLAG, "json", FIELD(json), NULL, "the coordinator's reply as it is")},
};

static const struct wlb_option_table table = {
	.command = "wlb runs",
	.about = "Lists runs, the newest first. Times are local; --json has them in UTC. 'wlb show RUN' shows one run.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_command_runs = {
	.name = "runs",
	.summary = "List runs",
	.options = &table,
	.values_bytes = sizeof(struct request),
	.run = list_runs,
};

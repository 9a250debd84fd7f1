/* wlb runs: lists runs, as squeue and sacct list jobs. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/output/csv.h"
#include "common/output/printable.h"
#include "common/output/terminal.h"
#include "common/output/wrap.h"
#include "coordinator/wlb/api.h"
#include "coordinator/wlb/commands.h"
#include "coordinator/wlb/delivery/pending.h"
#include "coordinator/wlb/history/run_columns.h"
#include "coordinator/wlb/history/since.h"

enum { LIMIT_MAX = 10000 }; /* of the coordinator, too */

struct request {
	const char *user, *account, *state, *model, *node, *text, *tag, *since;
	const char *order;
	const char *columns;
	int limit;
	bool json, csv;
};

static int make_path(const struct request *request, char *path, size_t size, struct wlb_error *error)
{
	const struct {
		const char *name, *value;
	} parameters[] = {{"user", request->user},   {"account", request->account}, {"state", request->state},
	                  {"model", request->model}, {"node", request->node},       {"text", request->text},
	                  {"tag", request->tag},     {"sort", request->order}};
	char number[32];
	time_t since;
	bool is_table = !request->json && !request->csv;
	/* The table asks for one run more than it prints, to know whether there are more. */
	snprintf(number, sizeof(number), "%d", request->limit + (is_table && request->limit < LIMIT_MAX));
	wlb_api_query(path, size, "limit", number);
	for (size_t i = 0; i < sizeof(parameters) / sizeof(parameters[0]); i++)
		if (parameters[i].value != NULL)
			wlb_api_query(path, size, parameters[i].name, parameters[i].value);
	if (request->since == NULL)
		return 0;
	if (wlb_since_parse(request->since, time(NULL), &since, error) != 0)
		return wlb_fail_in(error, "--since");
	snprintf(number, sizeof(number), "%lld", (long long)since);
	wlb_api_query(path, size, "since", number);
	return 0;
}

static int print_table(json_t *reply, const struct wlb_run_columns *columns, size_t limit)
{
	const json_t *runs = json_object_get(reply, "runs");
	int rc = wlb_make_printable(reply);
	if (rc == 0)
		rc = wlb_run_columns_print(columns, runs, limit);
	if (rc == 0 && (json_array_size(runs) > limit || json_integer_value(json_object_get(reply, "left_out")) > 0))
		wlb_wrap_print("more runs are not listed; --limit and the filters choose others", 0,
		               wlb_terminal_columns(), stdout);
	return rc;
}

static int print_csv(json_t *reply, const struct wlb_run_columns *columns)
{
	const char *fields[WLB_RUN_FIELDS];
	wlb_run_columns_fields(columns, fields);
	return wlb_csv_print(json_object_get(reply, "runs"), fields, true, stdout);
}

static int list_runs(void *values, struct wlb_error *error)
{
	const struct request *request = values;
	struct wlb_run_columns columns;
	char path[4096] = "/v1/runs";
	if (request->json && request->csv)
		wlb_fail(error, "--json and --csv: choose one of them");
	if ((request->json && request->csv) || make_path(request, path, sizeof(path), error) != 0 ||
	    wlb_run_columns_choose(request->columns, request->csv, &columns, error) != 0 ||
	    (request->order != NULL && wlb_run_order_check(request->order, error) != 0))
		return WLB_EXIT_USAGE;
	wlb_pending_deliver();
	json_t *reply = wlb_api_get(path, error);
	if (reply == NULL)
		return WLB_EXIT_FAILED;
	if (request->json)
		return wlb_json_print_report(reply, error) == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
	int rc = request->csv ? print_csv(reply, &columns) : print_table(reply, &columns, (size_t)request->limit);
	json_decref(reply);
	if (rc != 0)
		wlb_fail(error, "out of memory for the list");
	return rc == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
}

#define FIELD(name) offsetof(struct request, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(TEXT, "user", FIELD(user), "NAME", "only this user's runs")},
	{WLB_OPTION(TEXT, "account", FIELD(account), "NAME", "only runs of jobs of this account of Slurm")},
	{WLB_OPTION(TEXT, "state", FIELD(state), NULL, "only runs in this state"),
         .choices = "starting|running|restarting|complete|failed|out_of_nodes|cancelled"},
	{WLB_OPTION(TEXT, "since", FIELD(since), "TIME",
                    "only runs that went on since then: 45m, 12h or 3d ago, or a local time such as 2026-11-20T10:00")},
	{WLB_OPTION(TEXT, "model", FIELD(model), "TEXT",
                    "only runs with this in the model's type, or in the path of its configuration")},
	{WLB_OPTION(TEXT, "node", FIELD(node), "NODE", "only runs of which an attempt had this node")},
	{WLB_OPTION(TEXT, "text", FIELD(text), "TEXT", "only runs with this in the job's name")},
	{WLB_OPTION(TEXT, "sort", FIELD(order), "COLUMN",
                    "the smallest first, or with - before COLUMN the largest, and runs without a value last: "
                    "by " WLB_RUN_ORDERS)},
	{WLB_OPTION(TEXT, "columns", FIELD(columns), "COLUMN,...",
                    "these columns of the table and of --csv: " WLB_RUN_COLUMNS)},
	{WLB_OPTION(TEXT, "tag", FIELD(tag), "TAG", "only runs with this tag (wlb tag)")},
	{WLB_OPTION(INT, "limit", FIELD(limit), "N", "at most N runs"), .min = 1, .max = LIMIT_MAX, .initial = "50"},
	{WLB_OPTION(FLAG, "json", FIELD(json), NULL, "the coordinator's reply as it is")},
	{WLB_OPTION(FLAG, "csv", FIELD(csv), NULL, "a line for each run, of all columns or those of --columns")},
};

static const struct wlb_option_table table = {
	.command = "wlb runs",
	.about = "Lists runs, the newest first. Times are local; those of --json and --csv are in UTC. On a terminal "
		 "the table "
		 "leaves out columns that do not fit. 'wlb show RUN' shows one run.",
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

/* wlb faults: lists faults, and what the coordinator found from the timings of ranks. */
#include <stdio.h>
#include <time.h>

#include "common/output/csv.h"
#include "common/output/printable.h"
#include "common/output/terminal.h"
#include "coordinator/wlb/api.h"
#include "coordinator/wlb/commands.h"
#include "coordinator/wlb/delivery/pending.h"
#include "coordinator/wlb/history/fault_table.h"
#include "coordinator/wlb/history/fold_faults.h"
#include "coordinator/wlb/history/since.h"
#include "coordinator/wlb/run_name.h"

enum { LIMIT = 50, RUN_LIMIT = 1000 }; /* where --limit is not given */

struct request {
	const char *run;
	const char *node;
	const char *since;
	int limit; /* 0: not given */
	bool json, csv;
};

static int make_path(const struct request *request, char *path, size_t size, struct wlb_error *error)
{
	char number[32];
	time_t since;
	if (request->run != NULL)
		wlb_api_query(path, size, "run", request->run);
	if (request->node != NULL)
		wlb_api_query(path, size, "node", request->node);
	if (request->since != NULL) {
		if (wlb_since_parse(request->since, time(NULL), &since, error) != 0)
			return wlb_fail_in(error, "--since");
		snprintf(number, sizeof(number), "%lld", (long long)since);
		wlb_api_query(path, size, "since", number);
	}
	int limit = request->run != NULL ? RUN_LIMIT : LIMIT;
	snprintf(number, sizeof(number), "%d", request->limit > 0 ? request->limit : limit);
	wlb_api_query(path, size, "limit", number);
	return 0;
}

static int print_faults(json_t *reply, const struct request *request, struct wlb_error *error)
{
	const json_t *list = json_object_get(reply, "faults");
	if (wlb_make_printable(reply) != 0)
		return wlb_fail(error, "out of memory for the list");
	if (json_array_size(list) == 0) {
		puts("no faults");
		return 0;
	}
	json_t *folded = wlb_faults_fold(list);
	int rc = folded != NULL
	                 ? wlb_fault_table_print(folded, 0, WLB_FAULT_ROWS_OF_RUNS, wlb_terminal_columns(), stdout)
	                 : -1;
	json_decref(folded);
	if (rc != 0)
		return wlb_fail(error, "out of memory for the list");
	if (request->run == NULL && json_array_size(list) == LIMIT && request->limit == 0)
		printf("  the newest %d; --limit, --node and --since choose others\n", LIMIT);
	return 0;
}

static int print_reply(json_t *reply, const struct request *request, struct wlb_error *error)
{
	static const char *const fields[] = {
		"run_id",    "source",     "attempt",  "time",         "kind",     "state",    "cause",
		"ranks",     "rank_count", "nodes",    "collective",   "sequence", "step",     "cost_percent",
		"certainty", "action",     "began_at", "confirmed_at", "over_at",  "evidence", NULL};
	if (!request->csv)
		return print_faults(reply, request, error);
	if (wlb_csv_print(json_object_get(reply, "faults"), fields, true, stdout) != 0)
		return wlb_fail(error, "out of memory for the list");
	return 0;
}

static int list_faults(void *values, struct wlb_error *error)
{
	struct request *request = values;
	char path[2048] = "/v1/faults", name[WLB_RUN_NAME_BYTES];
	if (request->json && request->csv) {
		wlb_fail(error, "--json and --csv: choose one of them");
		return WLB_EXIT_USAGE;
	}
	int found = request->run != NULL ? wlb_run_name_find(request->run, name, error) : WLB_EXIT_DONE;
	if (found != WLB_EXIT_DONE)
		return found;
	if (request->run != NULL)
		request->run = name;
	if (make_path(request, path, sizeof(path), error) != 0)
		return WLB_EXIT_USAGE;
	wlb_pending_deliver();
	json_t *reply = wlb_api_get(path, error);
	if (reply == NULL)
		return WLB_EXIT_FAILED;
	if (request->json)
		return wlb_json_print_report(reply, error) == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
	int rc = print_reply(reply, request, error);
	json_decref(reply);
	return rc == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
}

#define FIELD(name) offsetof(struct request, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(TEXT, NULL, FIELD(run), "RUN",
                    "only those of this run, in the order of time; last: of your newest")},
	{WLB_OPTION(TEXT, "node", FIELD(node), "NODE", "only those of this node")},
	{WLB_OPTION(TEXT, "since", FIELD(since), "TIME",
                    "only those since then: 45m, 12h or 3d ago, or a local time such as 2026-11-20T10:00")},
	{WLB_OPTION(INT, "limit", FIELD(limit), "N", "at most N, the newest (default 50; 1000 with RUN)"), .min = 1,
         .max = 1000},
	{WLB_OPTION(FLAG, "json", FIELD(json), NULL, "all that the coordinator knows of them")},
	{WLB_OPTION(FLAG, "csv", FIELD(csv), NULL, "the same, a line for each")},
};

static const struct wlb_option_table table = {
	.command = "wlb faults",
	.about = "Lists the faults of runs, and the hangs, stragglers and slow links that the coordinator found from "
		 "the timings of their ranks: what happened, to which rank, link or node, what it costs the run, what "
		 "was done about it, and the evidence. Without RUN the newest 50 of all runs that you may read, the "
		 "newest first. Times are local; those of --json and --csv are in UTC.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_command_faults = {
	.name = "faults",
	.summary = "List faults and slow or hanging ranks, with the evidence",
	.options = &table,
	.values_bytes = sizeof(struct request),
	.run = list_faults,
};

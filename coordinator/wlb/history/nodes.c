/* wlb nodes: lists what is known of nodes over the runs of all users, and clears a node that was repaired. */
#include <stdio.h>
#include <string.h>

#include "common/json_text.h"
#include "common/output/csv.h"
#include "common/output/printable.h"
#include "common/output/table.h"
#include "common/output/terminal.h"
#include "common/show.h"
#include "coordinator/wlb/api.h"
#include "coordinator/wlb/commands.h"
#include "coordinator/wlb/delivery/pending.h"
#include "coordinator/wlb/output/reply_fields.h"
#include "coordinator/wlb/output/time_format.h"

struct request {
	const char *node;
	const char *clear;
	int limit;
	bool json, csv;
};

static void format_time(const json_t *entry, const char *key, char *text, size_t size)
{
	wlb_time_format(wlb_time_parse(wlb_field_text(entry, key, NULL)), text, size);
}

static const char *check_of(const json_t *entry)
{
	const json_t *healthy = json_object_get(entry, "healthy");
	return !json_is_boolean(healthy) ? "-" : json_is_true(healthy) ? "healthy" : "failed";
}

/* `avoid_from` is null where no node is avoided. */
static const char *state_of(const json_t *node, const json_t *avoid_from)
{
	double weight = json_number_value(json_object_get(node, "weight"));
	return json_is_number(avoid_from) && weight >= json_number_value(avoid_from) ? "avoided"
	       : json_is_true(json_object_get(node, "suspected"))                    ? "suspected"
	                                                                             : "used";
}

static void add_node(struct wlb_table *table, const json_t *node, const json_t *avoid_from)
{
	char weight[32], losses[32], lost[32], checked[32];
	wlb_field_real(node, "weight", 2, weight, sizeof(weight));
	wlb_field_number(node, "losses", losses, sizeof(losses));
	format_time(node, "lost_at", lost, sizeof(lost));
	format_time(node, "checked_at", checked, sizeof(checked));
	const char *const cells[] = {wlb_field_text(node, "node", "-"),
	                             state_of(node, avoid_from),
	                             weight,
	                             losses,
	                             lost,
	                             check_of(node),
	                             checked};
	const char *reason = wlb_field_text(node, "reason", "");
	wlb_table_add(table, cells);
	if (*reason != '\0')
		wlb_table_note(table, reason);
}

static int print_list(const json_t *list, const json_t *avoid_from, struct wlb_error *error)
{
	static const char *const titles[] = {"NODE", "STATE", "WEIGHT", "RUNS LOST", "LAST LOST", "CHECK", "CHECKED"};
	struct wlb_table table = {.columns = 7, .right = "lsrrlsl", .leave = "--32415"};
	wlb_table_fit_terminal(&table);
	wlb_table_add(&table, titles);
	for (size_t i = 0; i < json_array_size(list); i++)
		add_node(&table, json_array_get(list, i), avoid_from);
	if (wlb_table_print(&table, "  ", stdout) != 0)
		return wlb_fail(error, "out of memory for the list");
	wlb_table_name_left_out(&table, titles, "--json has them", 2, stdout);
	return 0;
}

static const char *event_of(const json_t *entry)
{
	const char *kind = wlb_field_text(entry, "kind", "");
	if (strcmp(kind, "loss") == 0)
		return "lost";
	if (strcmp(kind, "eviction") == 0)
		return "excluded";
	if (strcmp(kind, "run_check") == 0)
		return "check in the run: failed";
	if (json_is_true(json_object_get(entry, "clears")))
		return "cleared";
	return json_is_true(json_object_get(entry, "healthy")) ? "check: healthy" : "check: failed";
}

static int print_history(const json_t *history, struct wlb_error *error)
{
	static const char *const titles[] = {"TIME", "EVENT", "RUN"};
	struct wlb_table table = {.columns = 3, .right = "lll"};
	wlb_table_fit_terminal(&table);
	wlb_table_add(&table, titles);
	for (size_t i = 0; i < json_array_size(history); i++) {
		const json_t *entry = json_array_get(history, i);
		char time[32];
		format_time(entry, "time", time, sizeof(time));
		const char *const cells[] = {time, event_of(entry), wlb_field_text(entry, "run_id", "-")};
		const char *reason = wlb_field_text(entry, "reason", "");
		wlb_table_add(&table, cells);
		if (*reason != '\0')
			wlb_table_note(&table, reason);
	}
	putchar('\n');
	return wlb_table_print(&table, "  ", stdout) == 0 ? 0 : wlb_fail(error, "out of memory for the list");
}

static int print_nodes(json_t *reply, const struct request *request, struct wlb_error *error)
{
	if (wlb_make_printable(reply) != 0)
		return wlb_fail(error, "out of memory for the list");
	const json_t *list = json_object_get(reply, "nodes");
	const json_t *avoid_from = json_object_get(reply, "avoid_from");
	if (json_array_size(list) == 0) {
		printf("no run has lost %s or excluded it, and no check of it was reported\n",
		       request->node != NULL ? "this node" : "a node");
		return 0;
	}
	if (print_list(list, avoid_from, error) != 0)
		return -1;
	if (request->node != NULL)
		return print_history(json_object_get(json_array_get(list, 0), "history"), error);
	int not_listed = (int)json_integer_value(json_object_get(reply, "not_listed"));
	if (not_listed > 0)
		printf("  %d more %s not listed: give a higher --limit than %d.\n", not_listed,
		       not_listed > 1 ? "are" : "is", request->limit);
	if (json_is_number(avoid_from))
		printf("  A node whose weight is %g or more is avoided; 'wlb nodes NODE' has its history.\n",
		       json_number_value(avoid_from));
	else
		puts("  No node is avoided: avoid_nodes = no in wlbd.conf; 'wlb nodes NODE' has a node's history.");
	return 0;
}

/* The list; of one node, its history. */
static int print_csv(json_t *reply, bool is_history, struct wlb_error *error)
{
	static const char *const of_nodes[] = {"node",    "weight",     "suspected",    "losses", "lost_at",
	                                       "healthy", "checked_at", "suspected_at", "reason", NULL};
	static const char *const of_history[] = {"time", "kind", "run_id", "healthy", "clears", "reason", NULL};
	json_t *rows = json_object_get(reply, "nodes");
	if (is_history)
		rows = json_object_get(json_array_get(rows, 0), "history");
	if (wlb_csv_print(rows, is_history ? of_history : of_nodes, true, stdout) != 0)
		return wlb_fail(error, "out of memory for the list");
	return 0;
}

static int clear_node(const struct request *request, struct wlb_error *error)
{
	json_t *body = json_pack("{s:o, s:b, s:b}", "node", wlb_json_text(request->clear), "healthy", 1, "clears", 1);
	json_t *reply = wlb_api_post("/v1/node_checks", body, error);
	json_decref(body);
	if (reply == NULL)
		return WLB_EXIT_FAILED;
	if (request->json)
		return wlb_json_print_report(reply, error) == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
	json_decref(reply);
	wlb_show_line(stdout, "%s is cleared: what was known of it before counts no more", request->clear);
	return WLB_EXIT_DONE;
}

static int list_nodes(void *values, struct wlb_error *error)
{
	const struct request *request = values;
	char path[2048] = "/v1/nodes", number[32];
	if (request->csv && (request->json || request->clear != NULL)) {
		wlb_fail(error, "--csv: give it without --json and --clear");
		return WLB_EXIT_USAGE;
	}
	if (request->clear != NULL && request->node != NULL) {
		wlb_fail(error, "--clear %.60s and NODE '%.60s': give one of them", request->clear, request->node);
		return WLB_EXIT_USAGE;
	}
	if (request->clear != NULL)
		return clear_node(request, error);
	if (request->node != NULL)
		wlb_api_query(path, sizeof(path), "node", request->node);
	snprintf(number, sizeof(number), "%d", request->limit);
	wlb_api_query(path, sizeof(path), "limit", number);
	wlb_pending_deliver();
	json_t *reply = wlb_api_get(path, error);
	if (reply == NULL)
		return WLB_EXIT_FAILED;
	if (request->json)
		return wlb_json_print_report(reply, error) == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
	int rc = request->csv ? print_csv(reply, request->node != NULL, error) : print_nodes(reply, request, error);
	json_decref(reply);
	return rc == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
}

#define FIELD(name) offsetof(struct request, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(TEXT, NULL, FIELD(node), "NODE", "only this node, and its history")},
	{WLB_OPTION(INT, "limit", FIELD(limit), "N",
                    "at most N: those with the most weight first, then suspected ones"),
         .min = 1, .max = 4096, .initial = "100"},
	{WLB_OPTION(TEXT, "clear", FIELD(clear), "NODE",
                    "the node was repaired: what was known of it before counts no more; for root and SlurmUser")},
	{WLB_OPTION(FLAG, "json", FIELD(json), NULL, "all that the coordinator knows of them")},
	{WLB_OPTION(FLAG, "csv", FIELD(csv), NULL,
                    "the same, a line for each node; with NODE, for each entry of its history")},
};

static const struct wlb_option_table table = {
	.command = "wlb nodes",
	.about = "Lists the nodes that runs of any user have lost or excluded, and those that check-node --report "
		 "has checked. A node failure that the coordinator itself has observed weighs 1, once for each run, "
		 "and a failed check 2, until the same kind of check is ok; after 3 days half of a weight remains. The "
		 "next attempts of all runs avoid a node of weight 1.5 or more, as far as they have enough others. A "
		 "node that a run "
		 "lost or excluded, or that failed a check, is suspected until a later report of root or SlurmUser has "
		 "exact products and passes every check that had failed. Times are local; those of --json and --csv "
                 "are in UTC.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_command_nodes = {
	.name = "nodes",
	.summary = "List nodes that were lost or checked, and those that runs avoid",
	.options = &table,
	.values_bytes = sizeof(struct request),
	.run = list_nodes,
};

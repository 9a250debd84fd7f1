/* wlb stacks: what the ranks of a run that hangs do, and which ranks differ from the others. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/number.h"
#include "common/output/printable.h"
#include "common/output/terminal.h"
#include "coordinator/wlb/api.h"
#include "coordinator/wlb/commands.h"
#include "coordinator/wlb/delivery/pending.h"
#include "coordinator/wlb/run_name.h"
#include "coordinator/wlb/stacks/page.h"

enum {
	CALL_MS = 30000,
	ANSWERS_MS = 15000, /* for the nodes: an agent reports each second and has 12 s then */
	PERIOD_MS = 500,
	COLUMNS_LEAST = 80,
	RANK_MAX = (1 << 20) - 1,
};

struct request {
	const char *name;
	const char *rank; /* NULL: all */
	bool last, json;
};

/* ---- gathering --------------------------------------------------------------------------------------------------- */

static bool has_all(const json_t *reply, json_int_t stacks_id)
{
	size_t i;
	const json_t *gathering;
	json_array_foreach(json_object_get(reply, "gatherings"), i, gathering)
	{
		if (json_integer_value(json_object_get(gathering, "stacks_id")) == stacks_id)
			return json_integer_value(json_object_get(gathering, "nodes")) >=
			       json_integer_value(json_object_get(gathering, "nodes_asked"));
	}
	return false;
}

/* Waits until all nodes have answered, or their time is over. */
static int wait_for_nodes(struct wlb_connection *connection, const struct request *request, json_int_t stacks_id,
                          struct wlb_error *error)
{
	char path[128];
	int64_t until_ms = wlb_clock_ms() + ANSWERS_MS;
	snprintf(path, sizeof(path), "/v1/runs/%s/stacks?ranks=none", request->name);
	for (bool done = false; !done;) {
		json_t *reply = wlb_api_request(connection, "GET", path, NULL, CALL_MS, NULL, error);
		if (reply == NULL)
			return -1;
		done = has_all(reply, stacks_id) || wlb_clock_left_ms(until_ms) == 0;
		json_decref(reply);
		if (!done)
			wlb_clock_sleep_ms(PERIOD_MS);
	}
	return 0;
}

/* Asks for stacks. Where the run has ended, or nobody can gather them, the newest that are kept are shown. */
static int gather(struct wlb_connection *connection, const struct request *request, struct wlb_error *error)
{
	char path[128];
	int status = 0;
	json_t *body = json_object();
	snprintf(path, sizeof(path), "/v1/runs/%s/stacks/gather", request->name);
	json_t *reply = wlb_api_request(connection, "POST", path, body, CALL_MS, &status, error);
	json_decref(body);
	if (reply == NULL && status == 409) {
		fprintf(stderr, "wlb stacks: %s; the newest that are kept follow\n", error->message);
		return 0;
	}
	if (reply == NULL)
		return -1;
	json_int_t stacks_id = json_integer_value(json_object_get(reply, "stacks_id"));
	json_decref(reply);
	return wait_for_nodes(connection, request, stacks_id, error);
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static int print(const struct request *request, json_t *reply, struct wlb_error *error)
{
	struct wlb_gathered gathered;
	int columns = isatty(STDOUT_FILENO) ? wlb_terminal_columns() : COLUMNS_LEAST, rc = 0;
	if (request->json)
		return wlb_json_print(reply) == 0 ? 0 : wlb_fail(error, "the reply cannot be written");
	if (json_array_size(json_object_get(reply, "gatherings")) == 0)
		return wlb_fail(error, "run %s: no stacks of it are kept; 'wlb stacks %s' gathers them while it runs",
		                request->name, request->name);
	if (wlb_make_printable(reply) != 0)
		return wlb_fail(error, "out of memory for the stacks");
	rc = wlb_gathered_read(reply, &gathered, error);
	if (rc == 0 && request->rank != NULL)
		rc = wlb_stacks_page_print_rank(&gathered, atoi(request->rank), columns, stdout, error);
	else if (rc == 0)
		wlb_stacks_page_print(&gathered, columns, stdout);
	wlb_gathered_free(&gathered);
	return rc;
}

static int show(struct wlb_connection *connection, const struct request *request, struct wlb_error *error)
{
	char path[128];
	if (!request->last && gather(connection, request, error) != 0)
		return -1;
	snprintf(path, sizeof(path), "/v1/runs/%s/stacks", request->name);
	json_t *reply = wlb_api_request(connection, "GET", path, NULL, CALL_MS, NULL, error);
	int rc = reply != NULL ? print(request, reply, error) : -1;
	json_decref(reply);
	return rc;
}

static int stacks(void *values, struct wlb_error *error)
{
	struct request *request = values;
	char name[WLB_RUN_NAME_BYTES];
	int64_t rank;
	if (request->rank != NULL && wlb_number_parse("--rank", request->rank, 0, RANK_MAX, &rank, error) != 0)
		return WLB_EXIT_USAGE;
	int found = wlb_run_name_find(request->name, name, error);
	if (found != WLB_EXIT_DONE)
		return found;
	request->name = name;
	wlb_pending_deliver();
	struct wlb_connection *connection = wlb_api_open(error);
	if (connection == NULL)
		return WLB_EXIT_FAILED;
	int rc = show(connection, request, error);
	wlb_connection_free(connection);
	return rc == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
}

#define FIELD(name) offsetof(struct request, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(TEXT, NULL, FIELD(name), "RUN", WLB_RUN_NAME_HELP), .required = true},
	{WLB_OPTION(TEXT, "rank", FIELD(rank), "N", "all threads of this rank instead of the clusters")},
	{WLB_OPTION(FLAG, "last", FIELD(last), NULL, "the newest stacks that are kept; ask for no new ones")},
	{WLB_OPTION(FLAG, "json", FIELD(json), NULL, "the coordinator's reply, with all threads of all ranks")},
};

static const struct wlb_option_table table = {
	.command = "wlb stacks",
	.about = "Gathers the stacks of all ranks of a run that hangs, clusters those that are alike, and names "
		 "the ranks that differ from most others.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_command_stacks = {
	.name = "stacks",
	.summary = "Show what all ranks of a run that hangs do, and which differ",
	.options = &table,
	.values_bytes = sizeof(struct request),
	.run = stacks,
};

/* wlb compare: several runs beside each other. */
#include <stdio.h>

#include "common/output/csv.h"
#include "common/output/printable.h"
#include "common/output/terminal.h"
#include "coordinator/wlb/api.h"
#include "coordinator/wlb/commands.h"
#include "coordinator/wlb/delivery/pending.h"
#include "coordinator/wlb/history/comparison.h"
#include "coordinator/wlb/history/comparison_text.h"
#include "coordinator/wlb/history/steps.h"
#include "coordinator/wlb/run_name.h"

enum { POINTS = 2000 }; /* of a curve: the most that the coordinator samples */

struct request {
	struct wlb_option_list names;
	const char *by;
	bool json, csv;
};

/* ---- CSV ------------------------------------------------------------------------------------------------------- */

static int add_line(json_t *lines, const json_t *run, const char *name, const json_t *at, const json_t *value)
{
	return json_array_append_new(lines, json_pack("{s:O, s:s, s:O*, s:O*}", "run", json_object_get(run, "run_id"),
	                                              "name", name, "at", at, "value", value));
}

static int add_run_lines(json_t *lines, json_t *run)
{
	const json_t *loss;
	const char *name;
	json_t *value;
	size_t i;
	int rc = 0;
	json_object_foreach(run, name, value)
	{
		if (!json_is_array(value))
			rc |= add_line(lines, run, name, NULL, value);
	}
	json_array_foreach(json_object_get(run, "losses"), i, loss)
	{
		rc |= add_line(lines, run, "loss", json_object_get(loss, "at"), json_object_get(loss, "loss"));
		rc |= add_line(lines, run, "mean_loss", json_object_get(loss, "at"), json_object_get(loss, "mean"));
	}
	return rc;
}

/* A line for each value of each run. */
static int print_csv(const json_t *report, struct wlb_error *error)
{
	static const char *const fields[] = {"run", "name", "at", "value", NULL};
	json_t *lines = json_array(), *runs = json_object_get(report, "runs"), *run;
	const json_t *entry;
	size_t i, side;
	int rc = lines != NULL ? 0 : -1;
	json_array_foreach(runs, i, run) rc |= add_run_lines(lines, run);
	json_array_foreach(json_object_get(report, "differences"), i, entry)
	{
		json_array_foreach(runs, side, run) rc |=
			add_line(lines, run, json_string_value(json_object_get(entry, "name")), NULL,
		                 json_array_get(json_object_get(entry, "values"), side));
	}
	if (rc == 0)
		rc = wlb_csv_print(lines, fields, true, stdout);
	json_decref(lines);
	return rc == 0 ? 0 : wlb_fail(error, "out of memory for the comparison");
}

/* ---- the command ----------------------------------------------------------------------------------------------- */

/* Each run is read on its own, so that one that the user may not read is named. */
static int fetch(struct wlb_comparison *comparison, const struct wlb_option_list *names, struct wlb_error *error)
{
	for (int i = 0; i < names->count; i++) {
		struct wlb_compared *compared = &comparison->runs[comparison->count];
		char name[WLB_RUN_NAME_BYTES], path[128];
		int found = wlb_run_name_find(names->texts[i], name, error);
		if (found != WLB_EXIT_DONE)
			return found;
		snprintf(path, sizeof(path), "/v1/runs/%s", name);
		comparison->count++;
		compared->run = wlb_api_get(path, error);
		compared->steps = compared->run != NULL ? wlb_steps_sample(name, POINTS, error) : NULL;
		if (compared->steps == NULL)
			return WLB_EXIT_FAILED;
	}
	return WLB_EXIT_DONE;
}

static int print(const struct wlb_comparison *comparison, const struct request *request, struct wlb_error *error)
{
	json_t *report = wlb_comparison_report(comparison);
	if (request->json || report == NULL)
		return wlb_json_print_report(report, error);
	int rc;
	if (request->csv)
		rc = print_csv(report, error);
	else if ((rc = wlb_make_printable(report)) == 0)
		rc = wlb_comparison_print(comparison, report, wlb_terminal_columns(), stdout);
	json_decref(report);
	return rc == 0 || error->message[0] != '\0' ? rc : wlb_fail(error, "out of memory for the comparison");
}

static int compare(void *values, struct wlb_error *error)
{
	const struct request *request = values;
	struct wlb_comparison comparison = {0};
	if (request->names.count < 2 || request->names.count > WLB_COMPARED_MAX) {
		wlb_fail(error, "%d %s given: compare needs 2 to %d", request->names.count,
		         request->names.count == 1 ? "run is" : "runs are", WLB_COMPARED_MAX);
		return WLB_EXIT_USAGE;
	}
	wlb_pending_deliver();
	int code = fetch(&comparison, &request->names, error);
	bool by_steps = request->by != NULL && request->by[0] == 's';
	if (code == WLB_EXIT_DONE && wlb_comparison_prepare(&comparison, by_steps) != 0) {
		wlb_fail(error, "out of memory for the runs");
		code = WLB_EXIT_FAILED;
	}
	if (code == WLB_EXIT_DONE && print(&comparison, request, error) != 0)
		code = WLB_EXIT_FAILED;
	wlb_comparison_free(&comparison);
	return code;
}

#define FIELD(name) offsetof(struct request, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(LIST, NULL, FIELD(names), "RUN RUN...", "2 to 8 runs; " WLB_RUN_NAME_HELP), .required = true},
	{WLB_OPTION(TEXT, "by", FIELD(by), NULL,
                    "compare losses at equal tokens or at equal steps (default: tokens, where every run has them)"),
         .choices = "tokens|steps"},
	{WLB_OPTION(FLAG, "json", FIELD(json), NULL, "numbers without rounding")},
	{WLB_OPTION(FLAG, "csv", FIELD(csv), NULL, "a line for each value: run,name,at,value")},
};

static const struct wlb_option_table table = {
	.command = "wlb compare",
	.about = "Shows runs beside each other: their losses in one chart and at equal tokens, speed, time lost, and "
		 "the "
		 "settings and layouts that differ.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_command_compare = {
	.name = "compare",
	.summary = "Compare runs: losses at equal tokens, speed, settings",
	.options = &table,
	.values_bytes = sizeof(struct request),
	.run = compare,
};

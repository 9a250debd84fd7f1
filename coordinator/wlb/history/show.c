/* wlb show: prints one run. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/output/printable.h"
#include "common/output/terminal.h"
#include "coordinator/wlb/api.h"
#include "coordinator/wlb/commands.h"
#include "coordinator/wlb/delivery/pending.h"
#include "coordinator/wlb/history/gpus.h"
#include "coordinator/wlb/history/print_steps.h"
#include "coordinator/wlb/history/said_values.h"
#include "coordinator/wlb/history/save_interval.h"
#include "coordinator/wlb/history/show_csv.h"
#include "coordinator/wlb/history/show_sections.h"
#include "coordinator/wlb/history/standstills.h"
#include "coordinator/wlb/history/steps.h"
#include "coordinator/wlb/history/tags.h"
#include "coordinator/wlb/history/time_lost.h"
#include "coordinator/wlb/history/why_layout.h"
#include "coordinator/wlb/output/reply_fields.h"
#include "coordinator/wlb/output/time_format.h"
#include "coordinator/wlb/run_name.h"

enum { STEPS_PER_COLUMN = 4 }; /* of the loss curve: each column shows their mean */

/* ---- --json ------------------------------------------------------------------------------------------------------ */

static int print_json(const char *name, json_t *run, struct wlb_error *error)
{
	json_object_del(run, "steps");
	char *text = wlb_printable_json(run, JSON_INDENT(2)), *before = NULL;
	char *end = text != NULL ? strrchr(text, '\n') : NULL;
	if (end != NULL && asprintf(&before, "%.*s,\n  \"steps\": ", (int)(end - text), text) < 0)
		before = NULL;
	free(text);
	int rc = before != NULL ? wlb_steps_print_json(name, NULL, before, error)
	                        : wlb_fail(error, "out of memory for the run");
	free(before);
	return rc;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* A line where the coordinator keeps some. */
static void print_stacks(const char *name)
{
	char path[128], when[32];
	snprintf(path, sizeof(path), "/v1/runs/%s/stacks?ranks=none", name);
	json_t *reply = wlb_api_get(path, NULL);
	const json_t *newest = json_array_get(json_object_get(reply, "gatherings"), 0);
	wlb_time_format(wlb_time_parse(wlb_field_text(newest, "asked_at", NULL)), when, sizeof(when));
	if (newest != NULL)
		printf("  stacks of its ranks were gathered at %s: wlb stacks %s --last\n", when, name);
	json_decref(reply);
}

static int print_tables(const char *name, const json_t *run)
{
	int rc = wlb_show_summary(run);
	if (rc == 0) {
		wlb_show_tags(run, stdout);
		wlb_show_save_interval(run, stdout);
		print_stacks(name);
	}
	if (rc == 0)
		rc = wlb_show_attempts(run);
	if (rc == 0) {
		wlb_show_gpus(run);
		rc = wlb_show_why_layout(run);
	}
	if (rc == 0)
		rc = wlb_show_time_lost(run, stdout);
	if (rc == 0)
		rc = wlb_show_said_values(run);
	if (rc == 0)
		rc = wlb_show_faults(run);
	if (rc == 0)
		rc = wlb_show_verdicts(run);
	if (rc == 0) {
		wlb_show_standstills(run);
		rc = wlb_show_checkpoints(run);
	}
	if (rc == 0)
		rc = wlb_show_evaluations(run);
	if (rc == 0)
		rc = wlb_show_events(run);
	return rc;
}

static int print_steps(json_t *steps, void *context)
{
	(void)context;
	return wlb_show_steps(steps);
}

static int print_text(const char *name, json_t *run, bool steps, struct wlb_error *error)
{
	if (wlb_make_printable(run) != 0 || print_tables(name, run) != 0)
		return wlb_fail(error, "out of memory for the run");
	json_t *sample = wlb_steps_sample(name, wlb_terminal_columns() * STEPS_PER_COLUMN, error);
	if (sample == NULL)
		return -1;
	int rc = wlb_show_loss(run, sample);
	json_decref(sample);
	if (rc != 0)
		return wlb_fail(error, "out of memory for the run");
	return steps ? wlb_steps_each_page(name, NULL, print_steps, NULL, error) : 0;
}

struct request {
	const char *name;
	const char *csv;
	bool json, steps;
};

static int print_run(const struct request *request, const char *name, json_t *run, struct wlb_error *error)
{
	if (request->csv != NULL)
		return wlb_show_csv(run, request->csv) == 0 ? 0 : wlb_fail(error, "out of memory for the run");
	return request->json ? print_json(name, run, error) : print_text(name, run, request->steps, error);
}

static int show(void *values, struct wlb_error *error)
{
	const struct request *request = values;
	char path[128], name[WLB_RUN_NAME_BYTES];
	if (request->csv != NULL && (request->json || request->steps)) {
		wlb_fail(error, "--csv %s: give it without --json and --steps", request->csv);
		return WLB_EXIT_USAGE;
	}
	int found = wlb_run_name_find(request->name, name, error);
	if (found != WLB_EXIT_DONE)
		return found;
	wlb_pending_deliver();
	snprintf(path, sizeof(path), "/v1/runs/%s", name);
	json_t *run = wlb_api_get(path, error);
	if (run == NULL)
		return WLB_EXIT_FAILED;
	int rc = print_run(request, name, run, error);
	json_decref(run);
	return rc == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
}

#define FIELD(name) offsetof(struct request, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(TEXT, NULL, FIELD(name), "RUN", WLB_RUN_NAME_HELP), .required = true},
	{WLB_OPTION(FLAG, "json", FIELD(json), NULL, "everything the coordinator knows, every step included")},
	{WLB_OPTION(TEXT, "csv", FIELD(csv), "LIST", "one list of it: " WLB_SHOW_LISTS), .choices = WLB_SHOW_LISTS},
	{WLB_OPTION(FLAG, "steps", FIELD(steps), NULL, "a line for each step as well")},
};

static const struct wlb_option_table table = {
	.command = "wlb show",
	.about = "Shows one run: its attempts and why each ended, from which step the next continued, the time that it "
		 "lost, faults, checkpoints and loss. Times are local; those of --json and --csv are in UTC.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_command_show = {
	.name = "show",
	.summary = "Show one run: attempts, faults, checkpoints, loss",
	.options = &table,
	.values_bytes = sizeof(struct request),
	.run = show,
};

/* wlb steps: lists the steps of a run. */
#include <stdio.h>

#include "coordinator/wlb/commands.h"
#include "coordinator/wlb/delivery/pending.h"
#include "coordinator/wlb/history/print_steps.h"
#include "coordinator/wlb/run_name.h"

#define STEP_MAX 1e12 /* of the coordinator, too, as is EVERY_MAX */
#define EVERY_MAX 1e9

struct request {
	const char *name;
	struct wlb_steps_choice choice;
	bool json, csv;
};

static int check(const struct request *request, struct wlb_error *error)
{
	const struct wlb_steps_choice *choice = &request->choice;
	if (request->json && request->csv)
		return wlb_fail(error, "--json and --csv: choose one of them");
	if (choice->points > 0 && (choice->from > 0 || choice->to > 0 || choice->every > 1))
		return wlb_fail(error, "--points %d is of the whole run: give it without --from, --to and --every",
		                choice->points);
	if (choice->to > 0 && choice->to < choice->from)
		return wlb_fail(error, "--to %lld: must not be before --from %lld", (long long)choice->to,
		                (long long)choice->from);
	return 0;
}

static int print_json(const char *name, const struct wlb_steps_choice *choice, struct wlb_error *error)
{
	char before[WLB_RUN_NAME_BYTES + 64];
	snprintf(before, sizeof(before), "{\n  \"run_id\": \"%s\",\n  \"steps\": ", name);
	return wlb_steps_print_json(name, choice, before, error);
}

static int list_steps(void *values, struct wlb_error *error)
{
	const struct request *request = values;
	char name[WLB_RUN_NAME_BYTES];
	if (check(request, error) != 0)
		return WLB_EXIT_USAGE;
	int rc = wlb_run_name_find(request->name, name, error);
	if (rc != WLB_EXIT_DONE)
		return rc;
	wlb_pending_deliver();
	rc = request->json  ? print_json(name, &request->choice, error)
	     : request->csv ? wlb_steps_print_csv(name, &request->choice, error)
	                    : wlb_steps_print_table(name, &request->choice, error);
	return rc == 0 ? WLB_EXIT_DONE : WLB_EXIT_FAILED;
}

#define FIELD(name) offsetof(struct request, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(TEXT, NULL, FIELD(name), "RUN", WLB_RUN_NAME_HELP), .required = true},
	{WLB_OPTION(INT64, "from", FIELD(choice.from), "K", "from this step on"), .max = STEP_MAX},
	{WLB_OPTION(INT64, "to", FIELD(choice.to), "K", "up to this step"), .min = 1, .max = STEP_MAX},
	{WLB_OPTION(INT64, "every", FIELD(choice.every), "N",
                    "of each N steps, counted from step 0, the first that is recorded"),
         .min = 1, .max = EVERY_MAX, .initial = "1"},
	{WLB_OPTION(INT, "points", FIELD(choice.points), "N", "at most N steps, evenly spaced over the run"), .min = 1,
         .max = WLB_STEPS_POINTS_MAX},
	{WLB_OPTION(FLAG, "json", FIELD(json), NULL, "everything that is recorded of each step")},
	{WLB_OPTION(FLAG, "csv", FIELD(csv), NULL, "the same, a line for each step")},
};

static const struct wlb_option_table table = {
	.command = "wlb steps",
	.about = "Lists the steps of a run: loss, norm of the gradient, learning rate, tokens and time of each. A step "
		 "that "
		 "several attempts did is listed once, as the last one did it.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_command_steps = {
	.name = "steps",
	.summary = "List the steps of a run",
	.options = &table,
	.values_bytes = sizeof(struct request),
	.run = list_steps,
};

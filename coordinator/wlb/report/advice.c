#include "coordinator/wlb/report/advice.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/wlb/output/reply_fields.h"
#include "libwlb/wlb.h"

enum { NODES_COUNTED = 64 };
static const double PREDICTION_ERROR_MAX = 0.2; /* as of `wlb show`, which asks for a calibration above it */
static const double INTERVAL_FACTOR =
	1.5; /* between what is and what is best; below it little is lost (save_interval) */

static double number(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

static const char *run_of(const json_t *run)
{
	return wlb_field_text(run, "run_id", "RUN");
}

/* Appends one piece of advice; `command` is a format for the run's name. */
static void say(json_t *advice, const json_t *run, const char *command, const char *text)
{
	char typed[128];
	snprintf(typed, sizeof(typed), "%s %s", command, run_of(run));
	json_array_append_new(advice, json_pack("{s:s, s:s}", "text", text, "command", *command != '\0' ? typed : ""));
}

static void about_state(json_t *advice, const json_t *run)
{
	const char *state = wlb_field_text(run, "state", "");
	if (strcmp(state, "out_of_nodes") == 0)
		say(advice, run, "wlb faults",
		    "Too few nodes were left. See which were lost and why; the run goes on from its newest checkpoint "
		    "when its job is "
		    "submitted again with the same --load.");
	else if (strcmp(state, "failed") == 0 && !json_is_integer(json_object_get(run, "last_step")))
		say(advice, run, "wlb logs", "The program ended before it had recorded a step. Its output says why.");
	else if (strcmp(state, "failed") == 0)
		say(advice, run, "wlb logs",
		    "The run failed. The end of its output has the error; the run goes on from its newest checkpoint "
		    "when its job is "
		    "submitted again.");
}

static void about_verdicts(json_t *advice, const json_t *run)
{
	const json_t *entry, *verdicts = json_object_get(run, "verdicts");
	size_t i, open = 0;
	json_array_foreach(verdicts, i, entry) open += strcmp(wlb_field_text(entry, "state", "over"), "over") != 0;
	char text[160];
	snprintf(text, sizeof(text), "%zu %s not over. See the evidence, and what wlbd does about it.", open,
	         open == 1 ? "verdict is" : "verdicts are");
	if (open > 0 && !json_is_string(json_object_get(run, "ended_at")))
		say(advice, run, "wlb faults", text);
}

/* Names the node that caused the faults of most attempts, where it did so more than once. */
static void about_nodes(json_t *advice, const json_t *run)
{
	struct {
		const char *node;
		int faults;
	} nodes[NODES_COUNTED] = {{NULL, 0}}, *most = &nodes[0];
	const json_t *fault;
	size_t i, count = 0;
	json_array_foreach(json_object_get(run, "faults"), i, fault)
	{
		const char *node = wlb_field_text(fault, "node", NULL);
		size_t k = 0;
		if (node == NULL || !json_is_true(json_object_get(fault, "cause")))
			continue;
		while (k < count && strcmp(nodes[k].node, node) != 0)
			k++;
		if (k == NODES_COUNTED)
			continue;
		count = k == count ? count + 1 : count;
		nodes[k].node = node;
		most = ++nodes[k].faults > most->faults ? &nodes[k] : most;
	}
	char text[320];
	wlb_text_format(text, sizeof(text),
	                "Node %s caused the faults of %d attempts. Have it checked before the next run: 'wlb "
	                "check-node' there.",
	                most->node, most->faults);
	if (most->faults > 1)
		say(advice, run, "wlb faults", text);
}

static void about_missing_steps(json_t *advice, const json_t *run)
{
	const json_t *missing = json_array_get(json_object_get(run, "steps_missing"), 0);
	char text[320];
	wlb_text_format(text, sizeof(text),
	                "Steps %.0f to %.0f of attempt %.0f are not recorded: its rank 0 on %s had not delivered them. "
	                "Your next wlb command "
	                "there delivers them.",
	                number(missing, "first_step"), number(missing, "last_step"), number(missing, "attempt"),
	                wlb_field_text(missing, "node", "an unknown node"));
	if (missing != NULL)
		say(advice, run, "wlb show", text);
}

static void about_saving(json_t *advice, const json_t *run)
{
	const json_t *known = json_object_get(run, "save_interval");
	double best_s = number(known, "interval_s"), now_s = number(known, "now_s"),
	       steps = number(known, "interval_steps");
	char text[256];
	if (best_s <= 0.0 || now_s <= 0.0 || (now_s < best_s * INTERVAL_FACTOR && now_s > best_s / INTERVAL_FACTOR))
		return;
	if (steps > 0.0)
		snprintf(text, sizeof(text),
		         "Save every %.0f steps (%.0f s) rather than every %.0f s: by the faults of your runs that "
		         "loses least.",
		         steps, best_s, now_s);
	else
		snprintf(text, sizeof(text),
		         "Save every %.0f s rather than every %.0f s: by the faults of your runs that loses least.",
		         best_s, now_s);
	say(advice, run, "", text);
}

/* Of the newest attempt that was planned and measured. */
static void about_prediction(json_t *advice, const json_t *run)
{
	const json_t *attempts = json_object_get(run, "attempts");
	for (size_t i = json_array_size(attempts); i > 0; i--) {
		const json_t *attempt = json_array_get(attempts, i - 1);
		double predicted_s = number(json_object_get(attempt, "plan"), "step_s"),
		       took_s = number(attempt, "step_s");
		if (predicted_s <= 0.0 || took_s <= 0.0)
			continue;
		char text[256];
		snprintf(text, sizeof(text),
		         "A step was predicted to take %.3g s and took %.3g s. Calibrate these nodes, as 'wlb show' "
		         "says in 'Why this layout': "
		         "later runs are planned with what was measured.",
		         predicted_s, took_s);
		if (fabs(predicted_s - took_s) > PREDICTION_ERROR_MAX * took_s)
			say(advice, run, "wlb show", text);
		return;
	}
}

json_t *wlb_report_advice(const json_t *run)
{
	json_t *advice = json_array();
	if (advice == NULL)
		return NULL;
	about_state(advice, run);
	about_verdicts(advice, run);
	about_nodes(advice, run);
	about_missing_steps(advice, run);
	about_saving(advice, run);
	about_prediction(advice, run);
	return advice;
}

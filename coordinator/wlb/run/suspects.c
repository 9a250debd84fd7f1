#include "coordinator/wlb/run/suspects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "coordinator/wlb/api.h"
#include "coordinator/wlb/run/print.h"

enum {
	AFTER_MS = 5000,  /* from the start of the attempt: its own start is not disturbed */
	CHECK_MS = 60000, /* for one node, with the time until Slurm creates the step */
	REPORT_MS = 2000,
};

void wlb_run_suspects_begin(struct wlb_run *run, const struct wlb_attempt *attempt)
{
	struct wlb_run_suspects *suspects = &run->suspects;
	json_decref(suspects->nodes);
	*suspects =
		(struct wlb_run_suspects){.nodes = json_copy(attempt->suspects), .begin_ms = wlb_clock_ms() + AFTER_MS};
}

static const char *first_name(const struct wlb_run_suspects *suspects)
{
	return json_string_value(json_array_get(suspects->nodes, 0));
}

static void start_check(struct wlb_run *run)
{
	struct wlb_run_suspects *suspects = &run->suspects;
	char gpus[16];
	struct wlb_error error;
	json_t *node = json_pack("[s]", first_name(suspects));
	const char *words[] = {"check-node", "--json", NULL, NULL, NULL, NULL, NULL};
	if (run->job.gpus_per_node > 0) {
		snprintf(gpus, sizeof(gpus), "%d", run->job.gpus_per_node);
		words[2] = "--device";
		words[3] = "cuda";
		words[4] = "--gpus";
		words[5] = gpus;
	}
	if (node == NULL ||
	    wlb_check_step_start(&run->signals_before, node, "none", words, CHECK_MS, &suspects->step, &error) != 0) {
		wlb_run_print("%s is not checked: %s", first_name(suspects),
		              node != NULL ? error.message : "out of memory");
		json_array_remove(suspects->nodes, 0);
	}
	json_decref(node);
}

/* The run may grow to a node that passed, as to one that answers again. */
static void give_back(struct wlb_attempt *attempt, const char *node)
{
	char **grown = reallocarray(attempt->missing, (size_t)attempt->missing_count + 2, sizeof(*grown));
	if (grown == NULL)
		return;
	attempt->missing = grown;
	grown[attempt->missing_count] = strdup(node);
	attempt->missing_count += grown[attempt->missing_count] != NULL;
}

static int report(struct wlb_run *run, const struct wlb_attempt *attempt, const json_t *found, struct wlb_error *error)
{
	char path[128];
	json_t *body = json_deep_copy(found);
	snprintf(path, sizeof(path), "/v1/runs/%s/node_checks", run->id);
	json_object_set_new(body, "attempt_id", json_string(attempt->id));
	json_object_set_new(body, "node", json_string(first_name(&run->suspects)));
	json_t *reply = wlb_api_call(run->connection, "POST", path, body, REPORT_MS, NULL, error);
	int rc = reply != NULL ? 0 : -1;
	json_decref(body);
	json_decref(reply);
	return rc;
}

static void take(struct wlb_run *run, struct wlb_attempt *attempt, const char *text)
{
	const char *node = first_name(&run->suspects), *reason = "it says nothing";
	struct wlb_error error;
	json_t *found = text != NULL ? json_loads(text, 0, NULL) : NULL;
	const json_t *healthy = json_object_get(found, "healthy");
	json_unpack(found, "{s?s}", "reason", &reason);
	if (!json_is_boolean(healthy)) {
		wlb_run_print("%s, which this attempt leaves out, could not be checked", node);
	} else if (report(run, attempt, found, &error) != 0) {
		wlb_run_print("the check of %s is not recorded: %s", node, error.message);
	} else if (json_is_true(healthy)) {
		wlb_run_print("%s, which this attempt leaves out, has passed its check: the next attempt may use it",
		              node);
		give_back(attempt, node);
	} else {
		wlb_run_print("%s, which this attempt leaves out, has failed its check: %s", node, reason);
	}
	json_decref(found);
}

void wlb_run_suspects_check(struct wlb_run *run, struct wlb_attempt *attempt)
{
	struct wlb_run_suspects *suspects = &run->suspects;
	if (json_array_size(suspects->nodes) == 0 || wlb_clock_left_ms(suspects->begin_ms) > 0)
		return;
	if (suspects->step.srun == 0) {
		start_check(run);
		return;
	}
	enum wlb_check_progress progress = wlb_check_step_poll(&suspects->step);
	if (progress == WLB_CHECK_STEP_RUNS)
		return;
	char *text;
	wlb_check_step_end(&suspects->step, &text);
	take(run, attempt, progress == WLB_CHECK_STEP_ENDED ? text : NULL);
	free(text);
	json_array_remove(suspects->nodes, 0);
}

void wlb_run_suspects_end(struct wlb_run *run)
{
	struct wlb_run_suspects *suspects = &run->suspects;
	char *text = NULL;
	if (suspects->step.srun != 0)
		wlb_check_step_end(&suspects->step, &text);
	free(text);
	json_decref(suspects->nodes);
	suspects->nodes = NULL;
}

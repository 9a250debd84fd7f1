#include "coordinator/wlbd/verdicts/outliers.h"

#include <stdlib.h>
#include <string.h>

#include "coordinator/stack_clusters/gathered.h"
#include "coordinator/wlbd/attempts/attempts.h"
#include "coordinator/wlbd/database/db_pool.h"
#include "coordinator/wlbd/detection/detection.h"
#include "coordinator/wlbd/detection/standstill.h"
#include "coordinator/wlbd/http/fields.h"
#include "coordinator/wlbd/log.h"
#include "coordinator/wlbd/verdicts/stacks.h"
#include "coordinator/wlbd/wlbd.h"

/* Numbers of verdicts are those of an attempt: the detection's begin with 1. */
enum { FIRST_NUMBER = 1 << 30 };

struct wlbd_outliers {
	struct wlbd_standstill still;
	int64_t read_id; /* the gathering that was last read from the database; 0: none */
	int reported;    /* verdicts */
	bool is_open, is_new;
	struct wlbd_found_verdict found;
};

/* ---- what is known of progress ----------------------------------------------------------------------------------- */

/* Sets the step under way, as far as it is known; -1: it is not. */
static struct wlbd_progress progress_of(const struct wlbd_attempt *attempt, int64_t *step)
{
	const struct wlbd_reporter *reporter;
	uint64_t steps = attempt->steps.count + attempt->attempt_steps.count;
	*step = attempt->steps.count > 0 ? attempt->steps.last : -1;
	TAILQ_FOREACH(reporter, &attempt->reporters.list, link)
	{
		steps += (uint64_t)reporter->step;
		if (reporter->step > 0 && reporter->step > *step)
			*step = reporter->step;
	}
	return (struct wlbd_progress){.steps = steps, .activities = &attempt->activities};
}

/* ---- the verdict ------------------------------------------------------------------------------------------------- */

/* Where all processes are stopped, or one is in a debugger, stacks show what the user does. */
static bool is_stopped_on_purpose(const struct wlb_gathered *gathered)
{
	int32_t stopped = 0;
	for (int32_t i = 0; i < gathered->count; i++) {
		const json_t *rank = json_array_get(gathered->ranks, (size_t)i);
		const char *state = json_string_value(json_object_get(rank, "state"));
		if (state != NULL && strcmp(state, "t") == 0)
			return true;
		stopped += state != NULL && strcmp(state, "T") == 0;
	}
	return stopped == gathered->count;
}

/* Returns how many ranks the attempt has: those of launchers are more than its tasks, and as many on each node. */
static int64_t ranks_of(const struct wlb_gathered *gathered, const struct wlbd_attempt *attempt)
{
	const char *before = "";
	int64_t nodes = 0, tasks = attempt->nodes.world_size;
	for (int32_t i = 0; i < gathered->count; i++) { /* ranks of a node follow each other */
		const char *node =
			json_string_value(json_object_get(json_array_get(gathered->ranks, (size_t)i), "node"));
		nodes += node != NULL && strcmp(node, before) != 0;
		before = node != NULL ? node : before;
	}
	int64_t ranks = nodes > 0 ? (int64_t)gathered->count * attempt->nodes.started_on.count / nodes : 0;
	return gathered->count > tasks ? ranks : tasks;
}

/* Most ranks of the attempt must stand at one place: most of the ranks whose stacks have arrived do not suffice. */
static bool is_of_most(const struct wlb_gathered *gathered, const struct wlbd_attempt *attempt)
{
	return gathered->clusters->count > 0 &&
	       2 * (int64_t)gathered->clusters->list[0].count > ranks_of(gathered, attempt);
}

/* Returns an index into the attempt's nodes; -1: it is not one of them. */
static int node_of(const struct wlb_gathered *gathered, const struct wlbd_attempt *attempt, int32_t rank)
{
	const json_t *entry = wlb_gathered_rank(gathered, rank);
	const char *node = json_string_value(json_object_get(entry, "node"));
	return node != NULL ? wlbd_names_find(&attempt->nodes.started_on, node) : -1;
}

/* Returns the node that has all ranks of the group; -1: there is none. */
static int node_of_group(const struct wlb_gathered *gathered, const struct wlbd_attempt *attempt, int32_t group)
{
	const struct wlb_verdict_group *ranks = group >= 0 ? &gathered->sets.list[group] : NULL;
	if (ranks == NULL || ranks->count > WLBD_NODE_RANKS_MAX)
		return -1;
	int node = node_of(gathered, attempt, ranks->members[0]);
	for (int32_t i = 1; i < ranks->count; i++)
		if (node_of(gathered, attempt, ranks->members[i]) != node)
			return -1;
	return node;
}

static void take(struct wlbd_attempt *attempt, struct wlbd_outliers *outliers, const struct wlb_gathered *gathered)
{
	struct wlb_verdict verdict;
	if (is_stopped_on_purpose(gathered) || !is_of_most(gathered, attempt) ||
	    !wlb_verdict_of_clusters(gathered->clusters, gathered->stacks, gathered->sets.list, &verdict))
		return;
	verdict.node = node_of_group(gathered, attempt, verdict.group);
	verdict.group = -1; /* of the sets, and no communicator */
	verdict.since_s = 1e-3 * (double)outliers->still.since_ms;
	progress_of(attempt, &verdict.since_step);
	outliers->found =
		(struct wlbd_found_verdict){.number = FIRST_NUMBER + outliers->reported++, .verdict = verdict};
	for (int i = 0; i < verdict.rank_count && i < WLB_VERDICT_RANKS; i++)
		outliers->found.node_of[i] = node_of(gathered, attempt, verdict.ranks[i]);
	outliers->is_open = outliers->is_new = true;
}

/* ---- stacks from the database ------------------------------------------------------------------------------------ */

struct reading {
	struct wlbd_attempt_ref attempt;
	int64_t since_ms; /* of the hang */
};

static void on_read(void *context, const struct wlbd_db_result *result)
{
	struct reading *reading = context;
	struct wlbd_attempt *attempt = wlbd_attempt_ref_find(&reading->attempt);
	struct wlbd_outliers *outliers = attempt != NULL ? attempt->outliers : NULL;
	struct wlb_gathered gathered;
	struct wlb_error error = {""};
	bool goes_on = outliers != NULL && outliers->still.since_ms == reading->since_ms && !outliers->is_open;
	free(reading);
	if (!goes_on)
		return;
	if (result->status != WLBD_DB_OK) {
		if (result->status == WLBD_DB_REFUSED)
			wlbd_log(WLBD_LOG_ERROR, "run %s: its stacks cannot be read: %s", attempt->run, result->detail);
		else
			outliers->read_id = 0; /* they are read again */
		return;
	}
	json_t *reply = json_loads(result->value, 0, NULL);
	if (wlb_gathered_read(reply, &gathered, &error) == 0)
		take(attempt, outliers, &gathered);
	else
		wlbd_log(WLBD_LOG_ERROR, "run %s: its stacks cannot be clustered: %s", attempt->run, error.message);
	wlb_gathered_free(&gathered);
	json_decref(reply);
}

static void read_stacks(struct wlbd_attempt *attempt, struct wlbd_outliers *outliers)
{
	struct wlbd_params params = {0};
	struct reading *reading = malloc(sizeof(*reading));
	if (reading == NULL)
		return;
	*reading = (struct reading){.attempt = wlbd_attempt_ref(attempt), .since_ms = outliers->still.since_ms};
	outliers->read_id = attempt->stacks.id;
	wlbd_params_add_integer(&params, attempt->attempt_pk);
	wlbd_params_add_integer(&params, attempt->stacks.id);
	wlbd_db_pool_execute(attempt->wlbd->reads, attempt->uid, 0, "select wlb_stacks_of_trainers($1, $2)", &params,
	                     on_read, reading);
}

/* ---- each second ------------------------------------------------------------------------------------------------- */

static void look(struct wlbd_attempt *attempt, struct wlbd_outliers *outliers, int64_t now_ms)
{
	if (!wlbd_standstill_is_long(&outliers->still, attempt->policy.on_fault.hang_after_s, now_ms))
		return;
	/* Stacks from before the hang show nothing of it. */
	if (attempt->stacks.id == 0 || attempt->stacks.asked_ms <= outliers->still.since_ms)
		wlbd_stacks_ask(attempt);
	else if (outliers->read_id != attempt->stacks.id && wlbd_stacks_are_complete(attempt, now_ms))
		read_stacks(attempt, outliers);
}

const struct wlbd_found_verdict *wlbd_outliers_judge(struct wlbd_attempt *attempt, bool is_named, int64_t now_ms)
{
	int64_t step;
	const struct wlbd_progress progress = progress_of(attempt, &step);
	if (attempt->outliers == NULL)
		attempt->outliers = calloc(1, sizeof(*attempt->outliers));
	struct wlbd_outliers *outliers = attempt->outliers;
	if (outliers == NULL)
		return NULL;
	if (outliers->is_open && outliers->found.verdict.stage == WLB_VERDICT_OVER)
		outliers->is_open = false;
	double stood_s = wlbd_standstill_take(&outliers->still, &progress, now_ms);
	outliers->found.is_changed = outliers->is_new;
	outliers->is_new = false;
	if (outliers->is_open && (stood_s <= 0 || is_named)) {
		outliers->found.verdict.stage = WLB_VERDICT_OVER;
		outliers->found.is_changed = true;
	} else if (!outliers->is_open && !is_named) {
		look(attempt, outliers, now_ms);
	}
	return outliers->is_open ? &outliers->found : NULL;
}

const struct wlbd_found_verdict *wlbd_outliers_open(const struct wlbd_outliers *outliers)
{
	return outliers != NULL && outliers->is_open && outliers->found.verdict.stage != WLB_VERDICT_OVER
	               ? &outliers->found
	               : NULL;
}

void wlbd_outliers_forget(struct wlbd_attempt *attempt)
{
	free(attempt->outliers);
	attempt->outliers = NULL;
}

void wlbd_outliers_note_step(struct wlbd_attempt *attempt, int64_t step, bool is_of_attempt)
{
	struct wlbd_recorded_steps *steps = is_of_attempt ? &attempt->attempt_steps : &attempt->steps;
	if (steps->count > 0 && step <= steps->last)
		return;
	steps->count++;
	steps->last = step;
}

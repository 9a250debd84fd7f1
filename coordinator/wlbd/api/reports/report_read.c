#include "coordinator/wlbd/api/reports/report_read.h"

#include <string.h>

#include "coordinator/wlbd/api/first_exit.h"
#include "coordinator/wlbd/api/reports/activity_read.h"
#include "coordinator/wlbd/api/reports/call_read.h"
#include "coordinator/wlbd/api/reports/processes_read.h"
#include "coordinator/wlbd/api/reports/step_read.h"
#include "coordinator/wlbd/http/fields.h"

#define LOST_STEPS_MAX INT64_C(1000000000000)

/* ---- the body alone ------------------------------------------------------------------------------ */

/* Entries have "rank" and "time" and, where `coded`, "code". */
static int check_entries(const json_t *entries, const char *name, bool coded, struct wlb_error *error)
{
	int64_t number;
	for (size_t i = 0; i < json_array_size(entries); i++) {
		const json_t *entry = json_array_get(entries, i);
		if (!json_is_object(entry))
			return wlb_fail(error, "%s[%zu]: must be an object", name, i);
		if (wlbd_field_integer(entry, "rank", WLBD_REQUIRED, 0, WLBD_RANKS_MAX, &number, error) != 0 ||
		    (coded && wlbd_field_integer(entry, "code", WLBD_REQUIRED, 0, 255, &number, error) != 0))
			return wlb_fail_in(error, "%s[%zu]", name, i);
	}
	return 0;
}

static int check_ranks(const json_t *ranks, struct wlb_error *error)
{
	for (size_t i = 0; i < json_array_size(ranks); i++) {
		const json_t *rank = json_array_get(ranks, i);
		if (!json_is_integer(rank) || json_integer_value(rank) < 0 || json_integer_value(rank) > WLBD_RANKS_MAX)
			return wlb_fail(error, "ranks[%zu]: must be a whole number from 0 to %d", i, WLBD_RANKS_MAX);
	}
	return 0;
}

static int read_arrays(const json_t *body, struct wlbd_report *report, struct wlb_error *error)
{
	if (wlbd_field_array(body, "ranks", WLBD_OPTIONAL, WLBD_NODE_RANKS_MAX, &report->ranks, error) != 0 ||
	    wlbd_field_array(body, "lost_ranks", WLBD_OPTIONAL, WLBD_NODE_RANKS_MAX, &report->lost_ranks, error) != 0 ||
	    wlbd_field_array(body, "exits", WLBD_OPTIONAL, WLBD_NODE_RANKS_MAX, &report->exits, error) != 0)
		return -1;
	if (check_ranks(report->ranks, error) != 0 ||
	    check_entries(report->lost_ranks, "lost_ranks", false, error) != 0)
		return -1;
	if (check_entries(report->exits, "exits", true, error) != 0)
		return -1;
	if (wlbd_activities_check(body, &report->activities, error) != 0 ||
	    wlbd_steps_check(body, &report->steps, error) != 0)
		return -1;
	return wlbd_calls_check(body, &report->calls, error) != 0
	               ? -1
	               : wlbd_processes_check(body, &report->processes, &report->faulty, error);
}

int wlbd_report_read(const json_t *body, struct wlbd_report *report, struct wlb_error *error)
{
	static const char *const sources[] = {"node", "run", NULL};
	static const char *const stepd_states[] = {"gone", NULL};
	const char *source = NULL;
	const char *stepd = NULL;
	*report = (struct wlbd_report){.rank = WLBD_LAUNCHER};
	if (wlbd_field_uuid(body, "attempt_id", &report->attempt_id, error) != 0 ||
	    wlbd_field_choice(body, "source", WLBD_REQUIRED, sources, &source, error) != 0 ||
	    wlbd_field_text(body, "node", WLBD_REQUIRED, WLBD_NAME_MAX, &report->node, error) != 0 ||
	    wlbd_field_integer(body, "rank", WLBD_OPTIONAL, WLBD_LAUNCHER, WLBD_RANKS_MAX, &report->rank, error) != 0 ||
	    wlbd_field_integer(body, "step", WLBD_OPTIONAL, 0, INT64_MAX, &report->step, error) != 0 ||
	    wlbd_field_integer(body, "lost_steps", WLBD_OPTIONAL, 0, LOST_STEPS_MAX, &report->lost_steps, error) != 0 ||
	    wlbd_field_text(body, "step_id", WLBD_OPTIONAL, 31, &report->step_id, error) != 0 ||
	    wlbd_field_choice(body, "stepd", WLBD_OPTIONAL, stepd_states, &stepd, error) != 0 ||
	    wlbd_field_boolean(body, "goodbye", WLBD_OPTIONAL, &report->goodbye, error) != 0 ||
	    wlbd_field_boolean(body, "agent", WLBD_OPTIONAL, &report->agent, error) != 0 ||
	    wlbd_field_integer(body, "own_nodes", WLBD_OPTIONAL, 1, WLBD_NODES_MAX, &report->own_nodes, error) != 0 ||
	    wlbd_slurm_end_read(body, &report->slurm_end, error) != 0 || read_arrays(body, report, error) != 0)
		return -1;
	report->launcher = strcmp(source, "run") == 0;
	report->stepd_gone = stepd != NULL && !report->launcher;
	if (report->launcher)
		report->rank = WLBD_LAUNCHER;
	else if (report->rank == WLBD_LAUNCHER)
		return wlb_fail(error, "field 'rank': is missing; a node's reporter is one of its ranks");
	return 0;
}

/* ---- the attempt --------------------------------------------------------------------------------- */

/* The ranks of a report, which are to be the attempt's on its node. */
struct claim {
	const struct wlbd_attempt_nodes *nodes;
	const char *node;
	int place; /* of the node, in the attempt's; -1: none */
};

static int check_rank(const struct claim *claim, int64_t rank, struct wlb_error *error)
{
	if (wlbd_attempt_nodes_may_run_at(claim->nodes, claim->place, rank))
		return 0;
	return wlb_fail(error, "rank %lld: the attempt has no such rank on node %s; report for its own ranks only",
	                (long long)rank, claim->node);
}

/* The rank of a launcher may be any number; that of its task is the attempt's. */
static int check_tasks_of(const json_t *faulty, const struct claim *claim, struct wlb_error *error)
{
	for (size_t i = 0; i < json_array_size(faulty); i++)
		if (check_rank(claim, json_integer_value(json_object_get(json_array_get(faulty, i), "task")), error) !=
		    0)
			return wlb_fail_in(error, "field 'processes'");
	return 0;
}

/* Entries are ranks, objects with a rank, or arrays that begin with one. */
static int check_ranks_of(const json_t *array, const char *name, const struct claim *claim, struct wlb_error *error)
{
	for (size_t i = 0; i < json_array_size(array); i++) {
		const json_t *entry = json_array_get(array, i), *rank = entry;
		if (!json_is_integer(entry))
			rank = json_is_object(entry) ? json_object_get(entry, "rank") : json_array_get(entry, 0);
		if (check_rank(claim, json_integer_value(rank), error) != 0)
			return wlb_fail_in(error, "field '%s'", name);
	}
	return 0;
}

/* An entry for each rank at most. */
static int check_array(const json_t *array, const char *name, const struct claim *claim, struct wlb_error *error)
{
	int max = wlbd_attempt_nodes_ranks_max(claim->nodes, claim->node);
	if (json_array_size(array) > (size_t)max)
		return wlb_fail(error, "field '%s': %zu entries; the attempt has at most %d ranks on node %s", name,
		                json_array_size(array), max, claim->node);
	return check_ranks_of(array, name, claim, error);
}

int wlbd_report_belongs(const struct wlbd_report *report, const struct wlbd_attempt_nodes *nodes,
                        struct wlb_error *error)
{
	if (report->launcher) /* `wlb run` may run on any node, and reports no ranks */
		return 0;
	if (!wlbd_attempt_nodes_may_have(nodes, report->node))
		return wlb_fail(error, "node '%.100s': is not one of the attempt's; report for its own nodes only",
		                report->node);
	const struct claim claim = {nodes, report->node, wlbd_names_find(&nodes->started_on, report->node)};
	if (check_rank(&claim, report->rank, error) != 0 || check_array(report->ranks, "ranks", &claim, error) != 0 ||
	    check_array(report->lost_ranks, "lost_ranks", &claim, error) != 0 ||
	    check_array(report->activities, "activities", &claim, error) != 0 ||
	    check_ranks_of(report->steps, "steps", &claim, error) != 0 ||
	    check_ranks_of(report->calls, "calls", &claim, error) != 0 ||
	    check_tasks_of(report->faulty, &claim, error) != 0)
		return -1;
	return check_array(report->exits, "exits", &claim, error);
}

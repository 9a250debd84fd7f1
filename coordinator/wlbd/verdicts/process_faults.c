#include "coordinator/wlbd/verdicts/process_faults.h"

#include <stdlib.h>

/* A trainer that reports nothing has no activities. */
static bool is_judged_otherwise(const struct wlbd_attempt *attempt)
{
	return attempt->watch.detection != NULL;
}

static bool has_faults(const struct wlbd_attempt *attempt)
{
	const struct wlbd_reporter *reporter;
	TAILQ_FOREACH(reporter, &attempt->reporters.list, link)
	if (reporter->processes != NULL && reporter->processes->count > 0)
		return true;
	return false;
}

/* Writes the nodes whose agents have reported since then. */
static int list_nodes(const struct wlbd_attempt *attempt, struct wlbd_processes_node *list, int64_t since_ms)
{
	const struct wlbd_reporter *reporter;
	int count = 0;
	TAILQ_FOREACH(reporter, &attempt->reporters.list, link)
	if (reporter->agent && !reporter->goodbye && reporter->reported_ms >= since_ms)
		list[count++] = (struct wlbd_processes_node){
			.name = reporter->node,
			.reported_ms = reporter->reported_ms,
			.index = wlbd_names_find(&attempt->nodes.started_on, reporter->node),
			.processes = reporter->processes};
	return count;
}

const struct wlbd_found_verdict *wlbd_process_faults_look(struct wlbd_attempt *attempt, int64_t now_ms, int *count)
{
	*count = 0;
	if (attempt->process_faults == NULL && (is_judged_otherwise(attempt) || !has_faults(attempt)))
		return NULL;
	if (attempt->process_faults == NULL)
		attempt->process_faults = calloc(1, sizeof(*attempt->process_faults));
	struct wlbd_processes_node *list = calloc((size_t)attempt->reporters.count + 1, sizeof(*list));
	if (attempt->process_faults == NULL || list == NULL) {
		free(list);
		return NULL;
	}
	int nodes = is_judged_otherwise(attempt) ? 0 : list_nodes(attempt, list, now_ms - WLBD_PROCESSES_FRESH_MS);
	wlbd_process_faults_judge(attempt->process_faults, list, nodes, attempt->nodes.started_on.count,
	                          attempt->policy.on_fault.hang_after_s, now_ms);
	free(list);
	return wlbd_process_faults_open(attempt, count);
}

const struct wlbd_found_verdict *wlbd_process_faults_open(const struct wlbd_attempt *attempt, int *count)
{
	*count = attempt->process_faults != NULL ? attempt->process_faults->count : 0;
	return attempt->process_faults != NULL ? attempt->process_faults->list : NULL;
}

void wlbd_process_faults_ranks(const struct wlbd_attempt *attempt, struct wlbd_rank_processes *ranks)
{
	struct wlbd_processes_node *list = calloc((size_t)attempt->reporters.count + 1, sizeof(*list));
	wlbd_rank_processes_fill(ranks, list, list != NULL ? list_nodes(attempt, list, 0) : 0);
	free(list);
}

void wlbd_process_faults_forget(struct wlbd_attempt *attempt)
{
	free(attempt->process_faults);
	attempt->process_faults = NULL;
}

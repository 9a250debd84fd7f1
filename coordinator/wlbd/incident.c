#include "coordinator/wlbd/incident.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/wlbd/decision.h"

struct wlbd_symptom *wlbd_incident_add(struct wlbd_incident *incident, enum wlbd_symptom_kind kind, const char *node,
                                       int rank, int64_t now_ms)
{
	for (int i = 0; i < incident->count; i++) {
		struct wlbd_symptom *old = &incident->symptoms[i];
		if (old->kind == kind && old->rank == rank && strcmp(old->node, node) == 0)
			return old;
	}
	if (incident->count == WLBD_SYMPTOMS_MOST)
		return NULL;
	size_t size = sizeof(*incident->symptoms);
	struct wlbd_symptom *more = realloc(incident->symptoms, size * (size_t)(incident->count + 1));
	if (more == NULL)
		return NULL;
	incident->symptoms = more;
	if (incident->count == 0)
		incident->opened_ms = now_ms;
	struct wlbd_symptom *symptom = &more[incident->count++];
	*symptom = (struct wlbd_symptom){.kind = kind, .rank = rank, .at_ms = now_ms, .step = -1};
	snprintf(symptom->node, sizeof(symptom->node), "%s", node);
	return symptom;
}

void wlbd_incident_clear(struct wlbd_incident *incident)
{
	free(incident->symptoms);
	incident->symptoms = NULL;
	incident->count = 0;
}

static bool node_is_lost(const struct wlbd_incident *incident, const char *node)
{
	for (int i = 0; i < incident->count; i++) {
		const struct wlbd_symptom *s = &incident->symptoms[i];
		if (s->node_state == WLBD_NODE_LOST && !s->withdrawn && strcmp(s->node, node) == 0)
			return true;
	}
	return false;
}

/* Whether the symptom says that a rank is gone, its node being alive. */
static bool tells_of_rank(const struct wlbd_incident *incident, const struct wlbd_symptom *s)
{
	return !s->withdrawn && s->kind != WLBD_SILENT && s->rank != WLBD_LAUNCHER && !node_is_lost(incident, s->node);
}

/* A step that ended well, by order, or for bad input takes its processes with it: nobody was lost. */
static bool ended_by_itself(const struct wlbd_incident *incident)
{
	return incident->over && (incident->exit_code == 0 || incident->exit_code == WLBD_EXIT_BAD_INPUT ||
	                          incident->exit_code == WLBD_EXIT_ORDERED);
}

/* Whether there is proof of a fault that does not need to wait for anybody to come back. */
static bool is_certain(const struct wlbd_incident *incident)
{
	for (int i = 0; i < incident->count; i++) {
		const struct wlbd_symptom *s = &incident->symptoms[i];
		if (!s->withdrawn && (s->node_state == WLBD_NODE_LOST || s->kind == WLBD_RANK_GONE))
			return true;
	}
	return false;
}

static bool must_wait(const struct wlbd_incident *incident, int64_t now_ms, int64_t grace_ms)
{
	bool open = !incident->over && !incident->settled && !is_certain(incident);
	if (!incident->over && now_ms < incident->opened_ms + WLBD_GATHER_MS)
		return true;
	for (int i = 0; i < incident->count; i++) {
		const struct wlbd_symptom *s = &incident->symptoms[i];
		if (s->withdrawn)
			continue;
		if (s->node_state == WLBD_NODE_ASKED)
			return true;
		if (open && s->kind == WLBD_CLOSED && now_ms < s->at_ms + grace_ms)
			return true;
	}
	return false;
}

static int find_lost_nodes(const struct wlbd_incident *incident, struct wlbd_finding *findings)
{
	int count = 0;
	for (int i = 0; i < incident->count; i++) {
		const struct wlbd_symptom *s = &incident->symptoms[i];
		bool known = false;
		if (s->withdrawn || s->node_state != WLBD_NODE_LOST)
			continue;
		for (int k = 0; k < count; k++)
			known = known || strcmp(findings[k].symptom->node, s->node) == 0;
		if (!known)
			findings[count++] = (struct wlbd_finding){.node_lost = true, .symptom = s};
	}
	return count;
}

static bool is_found(const struct wlbd_finding *findings, int count, int rank)
{
	for (int i = 0; i < count; i++)
		if (!findings[i].node_lost && findings[i].symptom->rank == rank)
			return true;
	return false;
}

/* Symptoms are in order of arrival: the first that tells of a rank is the cause when no node was lost. After it only
 * ranks that were seen to go count, and closed connections while the step still runs: once it has ended, Slurm itself
 * took the others away. */
static int find_lost_ranks(const struct wlbd_incident *incident, struct wlbd_finding *findings, int nodes)
{
	int count = nodes;
	for (int i = 0; i < incident->count && count < nodes + WLBD_CONSEQUENCES_MOST; i++) {
		const struct wlbd_symptom *s = &incident->symptoms[i];
		if (!tells_of_rank(incident, s) || is_found(findings, count, s->rank))
			continue;
		if (count == 0 || s->kind == WLBD_RANK_GONE || (!incident->over && nodes == 0 && !is_certain(incident)))
			findings[count++] = (struct wlbd_finding){.node_lost = false, .symptom = s};
	}
	return count;
}

enum wlbd_judgement wlbd_incident_judge(const struct wlbd_incident *incident, int64_t now_ms, int64_t grace_ms,
                                        struct wlbd_finding *findings, int *count)
{
	*count = 0;
	if (incident->count == 0)
		return WLBD_JUDGE_NOTHING;
	if (must_wait(incident, now_ms, grace_ms))
		return WLBD_JUDGE_LATER;
	*count = find_lost_nodes(incident, findings);
	if (!incident->settled && !ended_by_itself(incident))
		*count = find_lost_ranks(incident, findings, *count);
	return *count > 0 ? WLBD_JUDGE_FAULTS : WLBD_JUDGE_NOTHING;
}

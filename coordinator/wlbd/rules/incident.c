#include "coordinator/wlbd/rules/incident.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/rank_end.h"
#include "coordinator/wlbd/rules/cause.h"
#include "coordinator/wlbd/rules/decision.h"

struct wlbd_symptom *wlbd_incident_add(struct wlbd_incident *incident, enum wlbd_symptom_kind kind, const char *node,
                                       int rank, int64_t now_ms)
{
	for (int i = 0; i < incident->count; i++) {
		struct wlbd_symptom *old = &incident->symptoms[i];
		if (old->kind == kind && old->rank == rank && strcmp(old->node, node) == 0)
			return old;
	}
	if (incident->count == WLBD_SYMPTOMS_MAX)
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
		if (s->node_state == WLBD_NODE_LOST && !s->withdrawn && !s->after_end && strcmp(s->node, node) == 0)
			return true;
	}
	return false;
}

/* `wlb run` was killed: it did not connect again although its node is alive, and has not reported how the step ended.
 */
static const struct wlbd_symptom *find_lost_launcher(const struct wlbd_incident *incident)
{
	for (int i = 0; i < incident->count && !wlbd_attempt_has_ended(&incident->life); i++) {
		const struct wlbd_symptom *s = &incident->symptoms[i];
		if (!s->withdrawn && s->kind == WLBD_CLOSED && s->rank == WLBD_LAUNCHER &&
		    s->node_state != WLBD_NODE_LOST && !node_is_lost(incident, s->node))
			return s;
	}
	return NULL;
}

static bool was_killed_by(const struct wlbd_symptom *s, int signal)
{
	return s->exit_code == 128 + signal;
}

/* Whether the rank may have ended because its step, its srun or its launcher had. */
static bool may_follow(const struct wlbd_symptom *s)
{
	return wlbd_cause_follow_ms(s->exit_code) > 0;
}

/* Whether the rank ended because another process of the run had ended. */
static bool is_consequence(const struct wlbd_incident *incident, const struct wlbd_symptom *s)
{
	const struct wlbd_symptom *launcher = find_lost_launcher(incident);
	bool deliberate = incident->deliberate_ms != 0 && s->at_ms > incident->deliberate_ms - WLBD_FOLLOW_MS;
	/* The ends of ranks and the launcher's report of why they end arrive in any order. */
	if (incident->slurm_end_ms != 0 &&
	    (may_follow(s) || (incident->slurm_end.is_certain && s->at_ms > incident->slurm_end_ms - WLBD_GATHER_MS)))
		return true;
	if (incident->life.srun_signal != 0 || incident->launch_failure.why[0] != '\0' || deliberate)
		return may_follow(s);
	if (launcher == NULL)
		return false;
	return s->at_ms + wlbd_cause_follow_ms(s->exit_code) >= launcher->at_ms;
}

/* Whether the symptom is that a rank on a live node is gone. */
static bool is_rank_loss(const struct wlbd_incident *incident, const struct wlbd_symptom *s)
{
	return !s->withdrawn && s->kind != WLBD_SILENT && s->rank != WLBD_LAUNCHER &&
	       !node_is_lost(incident, s->node) && !is_consequence(incident, s);
}

/* No rank of a step that ended well, by order, as it was asked to, or because of bad input was lost. */
static bool ended_without_loss(const struct wlbd_incident *incident)
{
	return wlbd_attempt_end_is_known(&incident->life) &&
	       (incident->life.exit_code == 0 || wlbd_exit_is_deliberate(incident->life.exit_code));
}

/* What explains the rank's end is reported soon after: Slurm ends the ranks of a cancelled job with SIGTERM, and a rank
 * with a broken pipe wrote to a process that had ended. */
static bool will_be_explained(const struct wlbd_symptom *s)
{
	return was_killed_by(s, SIGTERM) || was_killed_by(s, SIGPIPE);
}

/* Whether a fault is proved, whichever processes connect again. */
static bool is_certain(const struct wlbd_incident *incident)
{
	for (int i = 0; i < incident->count; i++) {
		const struct wlbd_symptom *s = &incident->symptoms[i];
		if (!s->withdrawn &&
		    (s->node_state == WLBD_NODE_LOST || (s->kind == WLBD_RANK_GONE && !will_be_explained(s))))
			return true;
	}
	return false;
}

/* A launcher always has its time to come back, because its end explains the end of its ranks. */
static bool may_reconnect(const struct wlbd_incident *incident, const struct wlbd_symptom *s)
{
	return (s->kind == WLBD_CLOSED || will_be_explained(s)) && s->node_state != WLBD_NODE_LOST &&
	       !wlbd_attempt_has_ended(&incident->life) && !incident->settled &&
	       (s->rank == WLBD_LAUNCHER || !is_certain(incident));
}

static int64_t grace_of(const struct wlbd_incident *incident, const struct wlbd_symptom *s, int64_t grace_ms)
{
	if (s->cut_off && grace_ms < WLBD_CUT_OFF_GRACE_MS)
		return WLBD_CUT_OFF_GRACE_MS;
	return incident->is_job_asked && grace_ms < WLBD_JOB_ANSWER_MS ? WLBD_JOB_ANSWER_MS : grace_ms;
}

static bool must_wait(const struct wlbd_incident *incident, int64_t now_ms, int64_t grace_ms)
{
	if (!wlbd_attempt_has_ended(&incident->life) && now_ms < incident->opened_ms + WLBD_GATHER_MS)
		return true;
	for (int i = 0; i < incident->count; i++) {
		const struct wlbd_symptom *s = &incident->symptoms[i];
		if (s->withdrawn)
			continue;
		if (s->node_state == WLBD_NODE_ASKED)
			return true;
		if (now_ms < s->at_ms + grace_of(incident, s, grace_ms) && may_reconnect(incident, s))
			return true;
	}
	return false;
}

/* Returns how many findings there are with these, each node once. */
static int find_lost_nodes(const struct wlbd_incident *incident, bool after_end, struct wlbd_finding *findings,
                           int before)
{
	int count = before;
	for (int i = 0; i < incident->count; i++) {
		const struct wlbd_symptom *s = &incident->symptoms[i];
		bool known = false;
		if (s->withdrawn || s->node_state != WLBD_NODE_LOST || s->after_end != after_end)
			continue;
		for (int k = 0; k < count; k++)
			known = known || (findings[k].what == WLBD_FOUND_NODE &&
			                  strcmp(findings[k].symptom->node, s->node) == 0);
		if (!known)
			findings[count++] = (struct wlbd_finding){.what = WLBD_FOUND_NODE, .symptom = s};
	}
	return count;
}

static bool has_rank(const struct wlbd_finding *findings, int count, int rank)
{
	for (int i = 0; i < count; i++)
		if (findings[i].what == WLBD_FOUND_RANK && findings[i].symptom->rank == rank)
			return true;
	return false;
}

/* Whether `s` ended before `other`, against the order in which they are known. A rank that failed in its own code ended
 * before one with a broken pipe however late its end is reported. SIGTERM and SIGKILL may be Slurm's, which follow. */
static bool ended_before(const struct wlbd_symptom *s, const struct wlbd_symptom *other)
{
	enum wlb_end_strength strength = wlb_rank_end_strength(s->exit_code);
	enum wlb_end_strength of_other = wlb_rank_end_strength(other->exit_code);
	bool is_broken_pipe = of_other == WLB_END_BROKEN_PIPE;
	if (strength <= of_other || (other->first && !is_broken_pipe) || was_killed_by(s, SIGTERM))
		return false;
	if (is_broken_pipe && wlb_rank_end_is_own(s->exit_code))
		return true;
	return s->at_ms <= other->at_ms + WLBD_SAME_MOMENT_MS;
}

/* Returns the rank that ended first: the one that srun saw end first, unless by a broken pipe, else the first with a
 * known exit code, else the first in order of arrival. NULL: no symptom is about a rank. */
static const struct wlbd_symptom *find_first_rank(const struct wlbd_incident *incident)
{
	const struct wlbd_symptom *known = NULL;
	const struct wlbd_symptom *any = NULL;
	for (int i = 0; i < incident->count; i++) {
		const struct wlbd_symptom *s = &incident->symptoms[i];
		if (!is_rank_loss(incident, s))
			continue;
		if (any == NULL)
			any = s;
		if ((s->exit_code != 0 || s->first) &&
		    (known == NULL || ended_before(s, known) || (s->first && !ended_before(known, s))))
			known = s;
	}
	return known != NULL ? known : any;
}

/* The cause is first. After it come ranks that are known to be gone, and closed connections while the step runs: once
 * it has ended, Slurm itself ends the other ranks. */
static int find_lost_ranks(const struct wlbd_incident *incident, struct wlbd_finding *findings, int before)
{
	int count = before;
	const struct wlbd_symptom *first = find_first_rank(incident);
	if (first == NULL)
		return count;
	if (before == 0 || first->kind == WLBD_RANK_GONE)
		findings[count++] = (struct wlbd_finding){.what = WLBD_FOUND_RANK, .symptom = first};
	for (int i = 0; i < incident->count && count < before + WLBD_CONSEQUENCES_MAX; i++) {
		const struct wlbd_symptom *s = &incident->symptoms[i];
		if (!is_rank_loss(incident, s) || has_rank(findings, count, s->rank))
			continue;
		if (s->kind == WLBD_RANK_GONE ||
		    (!wlbd_attempt_has_ended(&incident->life) && before == 0 && !is_certain(incident)))
			findings[count++] = (struct wlbd_finding){.what = WLBD_FOUND_RANK, .symptom = s};
	}
	return count;
}

/* The launcher is the cause where no node was lost, unless a rank ended by itself before. */
static int insert_launcher(const struct wlbd_incident *incident, struct wlbd_finding *findings, int nodes, int count)
{
	const struct wlbd_symptom *launcher = find_lost_launcher(incident);
	int at = count > nodes && findings[nodes].symptom->exit_code != 0 ? count : nodes;
	if (launcher == NULL)
		return count;
	memmove(&findings[at + 1], &findings[at], sizeof(*findings) * (size_t)(count - at));
	findings[at] = (struct wlbd_finding){.what = WLBD_FOUND_LAUNCHER, .symptom = launcher};
	return count + 1;
}

/* A rank whose exit code is known is the cause, and not the lost nodes, if each lost node was alive after the rank's
 * end. */
static void put_cause_first(struct wlbd_finding *findings, int nodes, int count)
{
	if (nodes == 0 || count == nodes)
		return;
	struct wlbd_finding rank = findings[nodes];
	if (rank.what != WLBD_FOUND_RANK || rank.symptom->exit_code == 0)
		return;
	for (int i = 0; i < nodes; i++)
		if (findings[i].symptom->alive_ms <= rank.symptom->at_ms + WLBD_ALIVE_MS)
			return;
	memmove(&findings[1], &findings[0], sizeof(rank) * (size_t)nodes);
	findings[0] = rank;
}

enum wlbd_judgement wlbd_incident_judge(const struct wlbd_incident *incident, int64_t now_ms, int64_t grace_ms,
                                        struct wlbd_finding *findings, int *count)
{
	*count = 0;
	if (incident->count == 0)
		return WLBD_JUDGE_NOTHING;
	if (must_wait(incident, now_ms, grace_ms))
		return WLBD_JUDGE_LATER;
	int nodes = find_lost_nodes(incident, false, findings, 0);
	*count = nodes;
	if (!incident->settled && !ended_without_loss(incident)) {
		*count = find_lost_ranks(incident, findings, nodes);
		*count = insert_launcher(incident, findings, nodes, *count);
		put_cause_first(findings, nodes, *count);
	}
	*count = find_lost_nodes(incident, true, findings, *count);
	return *count > 0 ? WLBD_JUDGE_FAULTS : WLBD_JUDGE_NOTHING;
}

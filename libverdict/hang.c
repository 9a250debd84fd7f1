#include "libverdict/hang.h"

#include <stdio.h>

#include "libverdict/bounds.h"
#include "libverdict/verdicts.h"
#include "libverdict/wait_for.h"

/* A state older than this is not judged; the rank, or its node, may be lost. */
static const double fresh_s = 2.5;
/* scontrol suspend reaches the nodes one by one: a rank that alone is stopped is so for longer than that takes. */
static const double suspend_spread_s = 5.0;
enum { MOST_CHAIN = 64 };

static const char *activity_name(enum wlb_verdict_activity activity)
{
	static const char *const names[] = {
		"starting",      "computing", "waiting for its loader", "in a call", "writing a checkpoint",
		"in evaluation", "ended"};
	return names[activity];
}

static void describe(const struct wlb_verdict_detector *detector, int32_t r, double stuck_s, double bound_s,
                     struct wlb_verdict *verdict)
{
	const struct verdict_rank *rank = &detector->rank[r];
	const struct verdict_group *group = &detector->world.group[verdict->group];
	int32_t waiter = detector->waits.waiter[verdict->group];
	const char *stopped = rank->process == WLB_VERDICT_STOPPED ? "; its process is stopped by a signal" : "";
	snprintf(verdict->evidence, sizeof(verdict->evidence),
	         "rank %d (node %d, step %lld) is %s and has begun nothing for %.1f s (bound %.1f s, predicted work "
	         "%.2f "
	         "times the usual)%s; rank %d has waited for it for %.1f s in call %llu of %s, which %d of %d members "
	         "have "
	         "not entered; %d of %d ranks are blocked in calls",
	         r, detector->world.node_of[r], (long long)rank->step, activity_name(rank->activity), stuck_s, bound_s,
	         verdict_work_times(rank), stopped, waiter, verdict_stuck_s(detector, waiter),
	         (unsigned long long)verdict->sequence, group->name, detector->waits.behind[verdict->group],
	         group->count, verdict_count_calling(detector), detector->world.ranks);
}

static void judge_rank(struct wlb_verdict_detector *detector, int32_t r)
{
	const struct verdict_rank *rank = &detector->rank[r];
	double stuck_s = verdict_stuck_s(detector, r);
	double suspect_s = verdict_bound_s(detector, rank, detector->options.suspect_s);
	double confirm_s = verdict_bound_s(detector, rank, detector->options.confirm_s);
	if (rank->process == WLB_VERDICT_STOPPED) {
		stuck_s = detector->time.job_s - rank->stopped_job_s;
		suspect_s = suspend_spread_s;
		confirm_s = detector->options.confirm_s;
	}
	if (stuck_s < suspect_s)
		return;
	int confirmed = stuck_s >= confirm_s;
	struct wlb_verdict verdict =
		verdict_blank(WLB_VERDICT_HANG, confirmed ? WLB_VERDICT_CONFIRMED : WLB_VERDICT_SUSPECTED);
	verdict_add_rank(&verdict, r);
	verdict.group = detector->waits.for_call[r];
	verdict.sequence = detector->waits.wanted[verdict.group];
	verdict.since_s = rank->progress_s;
	verdict.since_step = rank->step;
	/* Twice the bound of a confirmation leaves little doubt. */
	double doubt = confirm_s / (confirm_s + stuck_s * stuck_s / confirm_s);
	verdict.certainty = confirmed ? 1.0 - 0.2 * doubt : 0.5;
	describe(detector, r, stuck_s, confirm_s, &verdict);
	verdict_found(detector, &verdict);
}

/* Follows the chain from a rank on, and returns the first rank that is on it twice; -1 where it ends. */
static int32_t find_circle(const struct wlb_verdict_detector *detector, int32_t r)
{
	int32_t chain[MOST_CHAIN];
	for (int32_t length = 0; length < MOST_CHAIN && r >= 0; length++) {
		for (int32_t i = 0; i < length; i++)
			if (chain[i] == r)
				return r;
		chain[length] = r;
		r = verdict_waits_for(detector, r);
	}
	return -1;
}

/* Where all chains of a run that stands still lead to ranks in calls, some of these wait for each other. */
static void find_deadlock(struct wlb_verdict_detector *detector, int32_t longest)
{
	const struct verdict_rank *rank = &detector->rank[longest];
	double stuck_s = detector->time.job_s - detector->time.progress_job_s;
	double confirm_s = verdict_bound_s(detector, rank, detector->options.confirm_s);
	int32_t first = stuck_s >= confirm_s ? find_circle(detector, longest) : -1;
	if (first < 0)
		return;
	struct wlb_verdict verdict = verdict_blank(WLB_VERDICT_DEADLOCK, WLB_VERDICT_CONFIRMED);
	int32_t r = first;
	do {
		verdict_add_rank(&verdict, r);
		r = verdict_waits_for(detector, r);
	} while (r != first && r >= 0 && verdict.rank_count < MOST_CHAIN);
	verdict.group = detector->rank[first].group;
	verdict.sequence = detector->rank[first].sequence;
	verdict.since_s = detector->rank[first].progress_s;
	verdict.since_step = detector->rank[first].step;
	verdict.certainty = 0.9;
	snprintf(verdict.evidence, sizeof(verdict.evidence),
	         "no rank has begun anything for %.1f s (bound %.1f s): rank %d waits in call %llu of %s for rank %d, "
	         "and "
	         "the chain of %d ranks leads back to it",
	         stuck_s, confirm_s, first, (unsigned long long)verdict.sequence,
	         detector->world.group[verdict.group].name, verdict_waits_for(detector, first), verdict.rank_count);
	verdict_found(detector, &verdict);
}

void verdict_hang_find(struct wlb_verdict_detector *detector)
{
	int32_t outside = 0, longest = -1;
	for (int32_t r = 0; r < detector->world.ranks; r++) {
		const struct verdict_rank *rank = &detector->rank[r];
		if (detector->waits.for_call[r] < 0)
			continue;
		if (verdict_is_calling(rank) && rank->process != WLB_VERDICT_STOPPED) {
			if (longest < 0 || rank->progress_job_s < detector->rank[longest].progress_job_s)
				longest = r;
			continue;
		}
		outside++;
		if (rank->seen && rank->process != WLB_VERDICT_GONE && verdict_silent_s(detector, r) <= fresh_s)
			judge_rank(detector, r);
	}
	if (outside == 0 && longest >= 0)
		find_deadlock(detector, longest);
}

/* Verdicts of a rank outside communication for which the others wait, and of ranks that wait for each other. */
#include <stdio.h>

#include "libverdict/bounds.h"
#include "libverdict/kinds.h"
#include "libverdict/verdicts.h"
#include "libverdict/wait_for.h"

/* A state older than this is not judged; the rank, or its node, may be lost. */
static const double fresh_s = 2.5;
/* The bounds of a rank whose process alone is stopped by a signal, as shares of suspect_s and confirm_s. A stop by a
 * signal is healthy in no activity, so no healthy stay lengthens these bounds. scontrol suspend, which stops all
 * processes, reaches the last node sooner. */
static const double stopped_suspect = 0.6, stopped_confirm = 0.625;

static const char *activity_name(enum wlb_verdict_activity activity)
{
	static const char *const names[] = {
		"starting",      "computing", "waiting for its loader", "in a call", "writing a checkpoint",
		"in evaluation", "ended"};
	return names[activity];
}

/* How long a rank has begun nothing, and the bounds for it. */
struct stay {
	double seconds;
	double suspect_s;
	double confirm_s;
};

static int is_stopped(const struct verdict_rank *rank)
{
	return rank->process == WLB_VERDICT_STOPPED && rank->activity != WLB_VERDICT_ENDED;
}

/* The stay of a rank that is stopped lasts as long as it was seen so and others were seen to run: after a suspended job
 * has been continued the reports of some ranks may be lost. Before the first step whoever starts a job may stop some of
 * its processes to attach a debugger. */
static struct stay stay_of(const struct wlb_verdict_detector *detector, int32_t r)
{
	const struct verdict_rank *rank = &detector->rank[r];
	const struct wlb_verdict_options *options = &detector->options;
	double running_job_s = detector->time.running_job_s;
	double seen_job_s = rank->seen_job_s < running_job_s ? rank->seen_job_s : running_job_s;
	double stopped_s = seen_job_s - rank->stopped_job_s;
	if (is_stopped(rank) && rank->step < 0)
		return (struct stay){stopped_s, options->patience_s, options->patience_s};
	if (is_stopped(rank))
		return (struct stay){stopped_s, stopped_suspect * options->suspect_s,
		                     stopped_confirm * options->confirm_s};
	return (struct stay){verdict_stuck_s(detector, r), verdict_bound_s(detector, rank, options->suspect_s),
	                     verdict_bound_s(detector, rank, options->confirm_s)};
}

/* Returns the number of bytes written. */
static size_t describe_rank(const struct wlb_verdict_detector *detector, int32_t r, const struct stay *stay,
                            struct wlb_verdict *verdict)
{
	const struct verdict_rank *rank = &detector->rank[r];
	int length;
	if (is_stopped(rank))
		length = snprintf(verdict->evidence, sizeof(verdict->evidence),
		                  "the process of rank %d (node %s, step %lld), which is %s, has been stopped by a "
		                  "signal for %.1f s (bound %.1f s) while others run",
		                  r, detector->world.node_name[detector->world.node_of[r]], (long long)rank->step,
		                  activity_name(rank->activity), stay->seconds, stay->confirm_s);
	else
		length = snprintf(verdict->evidence, sizeof(verdict->evidence),
		                  "rank %d (node %s, step %lld) is %s and has begun nothing for %.1f s (bound %.1f s, "
		                  "predicted work %.2f times the usual)",
		                  r, detector->world.node_name[detector->world.node_of[r]], (long long)rank->step,
		                  activity_name(rank->activity), stay->seconds, stay->confirm_s,
		                  verdict_work_times(rank));
	return length < 0 ? 0 : (size_t)length;
}

static void describe(const struct wlb_verdict_detector *detector, int32_t r, const struct stay *stay,
                     struct wlb_verdict *verdict)
{
	size_t length = describe_rank(detector, r, stay, verdict);
	if (length >= sizeof(verdict->evidence))
		return;
	char *end = verdict->evidence + length;
	size_t space = sizeof(verdict->evidence) - length;
	int32_t calling = verdict_count_calling(detector), ranks = detector->world.ranks;
	if (verdict->group < 0) {
		snprintf(end, space, "; %d of %d ranks are blocked in calls", calling, ranks);
		return;
	}
	const struct verdict_group *group = &detector->world.group[verdict->group];
	int32_t waiter = detector->waits.waiter[verdict->group];
	snprintf(end, space,
	         "; rank %d has waited for it for %.1f s in call %llu of %s, which %d of %d members have not entered; "
	         "%d of %d ranks are blocked in calls",
	         waiter, verdict_stuck_s(detector, waiter), (unsigned long long)verdict->sequence, group->name,
	         detector->waits.behind[verdict->group], group->count, calling, ranks);
}

static void judge_rank(struct wlb_verdict_detector *detector, int32_t r)
{
	const struct verdict_rank *rank = &detector->rank[r];
	struct stay stay = stay_of(detector, r);
	if (stay.seconds < stay.suspect_s)
		return;
	int confirmed = stay.seconds >= stay.confirm_s;
	struct wlb_verdict verdict =
		verdict_blank(WLB_VERDICT_HANG, confirmed ? WLB_VERDICT_CONFIRMED : WLB_VERDICT_SUSPECTED);
	verdict_add_rank(&verdict, r);
	verdict.group = detector->waits.for_call[r];
	verdict.sequence = verdict.group >= 0 ? detector->waits.wanted[verdict.group] : 0;
	verdict.since_s = rank->progress_s;
	verdict.since_step = rank->step;
	/* Twice the bound of a confirmation leaves little doubt. */
	double doubt = stay.confirm_s / (stay.confirm_s + stay.seconds * stay.seconds / stay.confirm_s);
	verdict.certainty = confirmed ? 1.0 - 0.2 * doubt : 0.5;
	describe(detector, r, &stay, &verdict);
	verdict_add(detector, &verdict);
}

/* Follows the chain from a rank on, and returns the least rank of the cycle in which it goes round; -1 where it ends. A
 * rank is kept after 1, 2, 4, ... steps until the chain comes back to it (Brent 1980, an improved Monte Carlo
 * factorization algorithm), so that chains may be of any length. */
static int32_t find_cycle(const struct wlb_verdict_detector *detector, int32_t r)
{
	int32_t kept = r, steps = 0, most = 1;
	while ((r = verdict_waits_for(detector, r)) != kept) {
		if (r < 0)
			return -1;
		if (++steps < most)
			continue;
		kept = r;
		steps = 0;
		most *= 2;
	}
	int32_t least = kept;
	while ((r = verdict_waits_for(detector, r)) != kept)
		least = r < least ? r : least;
	return least;
}

/* Where all chains of a run that hangs lead to ranks in calls, some of these wait for each other. */
static void find_deadlock(struct wlb_verdict_detector *detector, int32_t longest)
{
	const struct verdict_rank *rank = &detector->rank[longest];
	double stuck_s = detector->time.job_s - detector->time.progress_job_s;
	double confirm_s = verdict_bound_s(detector, rank, detector->options.confirm_s);
	int32_t first = stuck_s >= confirm_s ? find_cycle(detector, longest) : -1;
	if (first < 0)
		return;
	struct wlb_verdict verdict = verdict_blank(WLB_VERDICT_DEADLOCK, WLB_VERDICT_CONFIRMED);
	int32_t r = first;
	do {
		verdict_add_rank(&verdict, r);
		r = verdict_waits_for(detector, r);
	} while (r != first);
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
	verdict_add(detector, &verdict);
}

/* 1 where a rank may be at fault: others wait for it, or it is stopped. In a run that hangs already another may
 * hang, too, before others have come to wait for it. */
static int is_suspect(const struct wlb_verdict_detector *detector, int32_t r)
{
	const struct verdict_rank *rank = &detector->rank[r];
	int works = rank->seen && (rank->activity == WLB_VERDICT_COMPUTING || rank->activity == WLB_VERDICT_LOADING);
	return detector->waits.for_call[r] >= 0 || is_stopped(rank) || (detector->standstill && works);
}

void verdict_hang_find(struct wlb_verdict_detector *detector)
{
	int32_t outside = 0, longest = -1;
	for (int32_t r = 0; r < detector->world.ranks; r++) {
		const struct verdict_rank *rank = &detector->rank[r];
		if (!is_suspect(detector, r))
			continue;
		if (verdict_is_calling(rank) && !is_stopped(rank)) {
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

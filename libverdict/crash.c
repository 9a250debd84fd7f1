#include "libverdict/crash.h"

#include <math.h>
#include <stdio.h>

#include "libverdict/verdicts.h"
#include "libverdict/wait_for.h"

/* A launcher ends the other ranks after the first that is gone. Those that are gone within this time of it went of
 * their own. */
static const double at_once_s = 0.1;
/* Until every reporter has told who is gone, which one was the first is not known. */
static const double all_told_s = 1.5;

static int is_crashed(const struct verdict_rank *rank)
{
	return rank->seen && rank->process == WLB_VERDICT_GONE && rank->activity != WLB_VERDICT_ENDED;
}

static int32_t find_gone(struct wlb_verdict_detector *detector)
{
	double first_s = INFINITY, seen_s = INFINITY;
	int32_t gone = 0, named = 0;
	for (int32_t r = 0; r < detector->world.ranks; r++)
		if (is_crashed(&detector->rank[r])) {
			gone++;
			first_s = fmin(first_s, detector->rank[r].gone_s);
			seen_s = fmin(seen_s, detector->rank[r].gone_seen_s);
		}
	/* A negative time is that of a clock that was set. */
	double told_s = detector->time.now_s - seen_s;
	if (gone == 0 || (told_s >= 0.0 && told_s < all_told_s))
		return gone;
	for (int32_t r = 0; r < detector->world.ranks; r++) {
		const struct verdict_rank *rank = &detector->rank[r];
		if (!is_crashed(rank) || rank->gone_s > first_s + at_once_s)
			continue;
		struct wlb_verdict verdict = verdict_blank(WLB_VERDICT_CRASH, WLB_VERDICT_CONFIRMED);
		verdict_add_rank(&verdict, r);
		verdict.since_s = rank->gone_s;
		verdict.since_step = rank->step;
		verdict.certainty = 0.99;
		snprintf(verdict.evidence, sizeof(verdict.evidence),
		         "the process of rank %d (node %s, step %lld) has been gone for %.1f s and had not ended its "
		         "work; "
		         "%d ranks are gone, the first of them %.1f s ago",
		         r, detector->world.node_name[detector->world.node_of[r]], (long long)rank->step,
		         detector->time.now_s - rank->gone_s, gone, detector->time.now_s - first_s);
		verdict_found(detector, &verdict);
		named++;
	}
	return named;
}

/* Returns the shortest time for which a rank of the node that is still at work has been silent; 0 where there is none
 * such. */
static double node_silent_s(const struct wlb_verdict_detector *detector, int32_t node)
{
	const struct verdict_lists *on_node = &detector->world.on_node;
	double least_s = INFINITY;
	for (int32_t i = on_node->first[node]; i < on_node->first[node + 1]; i++) {
		int32_t r = on_node->list[i];
		const struct verdict_rank *rank = &detector->rank[r];
		if (!rank->seen || is_crashed(rank) || rank->activity == WLB_VERDICT_ENDED)
			return 0.0;
		least_s = verdict_silent_s(detector, r) < least_s ? verdict_silent_s(detector, r) : least_s;
	}
	return isfinite(least_s) ? least_s : 0.0;
}

static void name_node(struct wlb_verdict_detector *detector, int32_t node, double silent_s, double confirm_s)
{
	const struct verdict_lists *on_node = &detector->world.on_node;
	struct wlb_verdict verdict =
		verdict_blank(WLB_VERDICT_CRASH, silent_s >= confirm_s ? WLB_VERDICT_CONFIRMED : WLB_VERDICT_SUSPECTED);
	verdict.node = node;
	for (int32_t i = on_node->first[node]; i < on_node->first[node + 1]; i++)
		verdict_add_rank(&verdict, on_node->list[i]);
	verdict.since_s = detector->time.now_s - silent_s;
	verdict.certainty = silent_s >= confirm_s ? 0.9 : 0.5;
	snprintf(verdict.evidence, sizeof(verdict.evidence),
	         "no rank of node %s has reported for %.1f s (bound %.1f s), and no rank of the job has begun anything "
	         "for "
	         "%.1f s",
	         detector->world.node_name[node], silent_s, confirm_s,
	         detector->time.job_s - detector->time.progress_job_s);
	verdict_found(detector, &verdict);
}

/* A node that reports no more is lost where the job hangs; otherwise its reporter alone is. Where most nodes are
 * silent, what is lost is the way of their reports. */
static int32_t find_silent(struct wlb_verdict_detector *detector)
{
	const struct wlb_verdict_options *options = &detector->options;
	double longest_s = options->times_longest * detector->longest_silence_s, now_s = detector->time.job_s;
	double suspect_s = options->suspect_s > longest_s ? options->suspect_s : longest_s;
	double confirm_s = options->confirm_s > longest_s ? options->confirm_s : longest_s;
	int32_t silent = 0;
	if (now_s - detector->time.progress_job_s < options->suspect_s)
		return 0;
	for (int32_t n = 0; n < detector->world.nodes; n++)
		silent += node_silent_s(detector, n) >= suspect_s;
	if (silent == 0 || 2 * silent > detector->world.nodes)
		return 0;
	for (int32_t n = 0; n < detector->world.nodes; n++) {
		double silent_s = node_silent_s(detector, n);
		if (silent_s >= suspect_s)
			name_node(detector, n, silent_s, confirm_s);
	}
	return silent;
}

int32_t verdict_crash_find(struct wlb_verdict_detector *detector)
{
	return find_gone(detector) + find_silent(detector);
}

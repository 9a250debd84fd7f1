/* Verdicts of processes that are gone and of nodes that report no more. */
#include <math.h>
#include <stdio.h>

#include "libverdict/bounds.h"
#include "libverdict/kinds.h"
#include "libverdict/verdicts.h"
#include "libverdict/wait_for.h"

/* A launcher ends the other ranks after the first that is gone. Ranks that are gone within this time of the first
 * went of their own. */
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
		verdict_add(detector, &verdict);
		named++;
	}
	return named;
}

/* How long a node may be silent. */
struct limits {
	double suspect_s;
	double confirm_s;
};

/* Looks at the ranks of the node that are still at work and have ever reported. Returns the shortest time for which one
 * of these ranks has been silent; 0 where there is no such rank, NaN where no rank of the node has ever reported. */
static double node_silent_s(const struct wlb_verdict_detector *detector, int32_t node)
{
	const struct verdict_lists *on_node = &detector->world.on_node;
	double least_s = INFINITY;
	for (int32_t i = on_node->first[node]; i < on_node->first[node + 1]; i++) {
		int32_t r = on_node->list[i];
		const struct verdict_rank *rank = &detector->rank[r];
		if (is_crashed(rank) || rank->activity == WLB_VERDICT_ENDED)
			return 0.0;
		if (rank->seen)
			least_s = fmin(least_s, verdict_silent_s(detector, r));
	}
	return isfinite(least_s) ? least_s : NAN;
}

/* Returns the limits of nodes that have never reported, from how long the job has begun nothing. They are lost only
 * where most nodes report and no step has ended meanwhile: otherwise they take part, and the trainer does not report of
 * them. */
static struct limits limits_of_unseen(const struct wlb_verdict_detector *detector, const struct limits *least)
{
	struct limits limits = *least;
	int32_t unseen = 0;
	for (int32_t n = 0; n < detector->world.nodes; n++)
		unseen += isnan(node_silent_s(detector, n));
	for (int32_t r = 0; unseen > 0 && r < detector->world.ranks; r++) {
		const struct verdict_rank *rank = &detector->rank[r];
		if (!rank->seen)
			continue;
		if (rank->first_step >= 0 && rank->step > rank->first_step)
			return (struct limits){INFINITY, INFINITY};
		limits.suspect_s = fmax(limits.suspect_s, verdict_bound_s(detector, rank, least->suspect_s));
		limits.confirm_s = fmax(limits.confirm_s, verdict_bound_s(detector, rank, least->confirm_s));
	}
	return 2 * unseen < detector->world.nodes ? limits : (struct limits){INFINITY, INFINITY};
}

/* How long a node has said nothing, and may. */
struct silence {
	double seconds;
	int is_from_the_start;
	struct limits limits;
};

/* What the silence of a node is judged by. */
struct silences {
	double still_s; /* how long the job has begun nothing */
	struct limits seen;
	struct limits unseen;
};

static struct silence silence_of(const struct wlb_verdict_detector *detector, const struct silences *silences,
                                 int32_t node)
{
	double seconds = node_silent_s(detector, node);
	if (isnan(seconds))
		return (struct silence){silences->still_s, 1, silences->unseen};
	return (struct silence){seconds, 0, silences->seen};
}

static void name_node(struct wlb_verdict_detector *detector, int32_t node, const struct silence *silence,
                      double still_s)
{
	const struct verdict_lists *on_node = &detector->world.on_node;
	int confirmed = silence->seconds >= silence->limits.confirm_s;
	struct wlb_verdict verdict =
		verdict_blank(WLB_VERDICT_CRASH, confirmed ? WLB_VERDICT_CONFIRMED : WLB_VERDICT_SUSPECTED);
	verdict.node = node;
	for (int32_t i = on_node->first[node]; i < on_node->first[node + 1]; i++)
		verdict_add_rank(&verdict, on_node->list[i]);
	verdict.since_s = detector->time.now_s - silence->seconds;
	verdict.certainty = confirmed ? 0.9 : 0.5;
	snprintf(verdict.evidence, sizeof(verdict.evidence),
	         "no rank of node %s has %s for %.1f s (bound %.1f s), and no rank of the job has begun anything "
	         "for %.1f s",
	         detector->world.node_name[node],
	         silence->is_from_the_start ? "ever reported, others have waited" : "reported", silence->seconds,
	         silence->limits.confirm_s, still_s);
	verdict_add(detector, &verdict);
}

/* A node that reports no more is lost where the job hangs; otherwise its reporter alone is. Where most nodes are
 * silent, what is lost is the way of their reports. */
static int32_t find_silent(struct wlb_verdict_detector *detector)
{
	const struct wlb_verdict_options *options = &detector->options;
	double longest_s = options->times_longest * detector->longest_silence_s;
	struct silences silences = {.still_s = detector->time.job_s - detector->time.progress_job_s,
	                            .seen = {fmax(options->suspect_s, longest_s), fmax(options->confirm_s, longest_s)}};
	int32_t silent = 0;
	if (silences.still_s < options->suspect_s)
		return 0;
	silences.unseen = limits_of_unseen(detector, &silences.seen);
	for (int32_t n = 0; n < detector->world.nodes; n++) {
		struct silence silence = silence_of(detector, &silences, n);
		silent += silence.seconds >= silence.limits.suspect_s;
	}
	if (silent == 0 || 2 * silent > detector->world.nodes)
		return 0;
	for (int32_t n = 0; n < detector->world.nodes; n++) {
		struct silence silence = silence_of(detector, &silences, n);
		if (silence.seconds >= silence.limits.suspect_s)
			name_node(detector, n, &silence, silences.still_s);
	}
	return silent;
}

int32_t verdict_crash_find(struct wlb_verdict_detector *detector)
{
	return find_gone(detector) + find_silent(detector);
}

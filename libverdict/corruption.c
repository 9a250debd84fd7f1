/* Verdicts of ranks that computed other bits than their peers, or than themselves. */
#include <stdio.h>

#include "libverdict/error.h"
#include "libverdict/kinds.h"
#include "libverdict/verdicts.h"

/* Of one rank alone: bits that differ are no noise, but which of the checks was wrong is the trainer's word. */
static const double certain = 0.99;

int wlb_verdict_take_corruption(struct wlb_verdict_detector *detector, const struct wlb_verdict_corruption *found,
                                struct wlb_verdict_error *error)
{
	int32_t ranks = detector->world.ranks;
	if (found->rank < 0 || found->rank >= ranks || found->first < 0 || found->first > found->rank ||
	    found->other < 0 || found->other >= ranks || found->suspects < 1 || found->suspects > ranks ||
	    found->step < 0)
		return verdict_fail(error,
		                    "corruption of rank %d at step %lld: %d suspects, the first of them %d, compared "
		                    "with %d: ranks are 0 to %d",
		                    found->rank, (long long)found->step, found->suspects, found->first, found->other,
		                    ranks - 1);
	detector->corruption[found->rank] = *found;
	return 0;
}

/* Returns how many ranks are suspected together with this one, the first of them, from `since` on. */
static int32_t count_suspects(const struct wlb_verdict_detector *detector, const struct wlb_verdict_corruption *first,
                              int64_t since)
{
	int32_t count = 0;
	for (int32_t r = first->rank; r < detector->world.ranks; r++) {
		const struct wlb_verdict_corruption *other = &detector->corruption[r];
		count += other->suspects == first->suspects && other->first == first->rank && other->step >= since;
	}
	return count;
}

/* Adds the ranks that are suspected together with this rank, which is the first of them. Where not all ranks have told
 * the newest check, what they told of earlier checks counts: reports of nodes arrive in turn, and checks go on. */
static void add_suspects(const struct wlb_verdict_detector *detector, const struct wlb_verdict_corruption *first,
                         struct wlb_verdict *verdict)
{
	int64_t since = count_suspects(detector, first, first->step) == first->suspects ? first->step : 0;
	for (int32_t r = first->rank; r < detector->world.ranks && verdict->rank_count < first->suspects; r++) {
		const struct wlb_verdict_corruption *other = &detector->corruption[r];
		if (other->suspects == first->suspects && other->first == first->rank && other->step >= since)
			verdict_add_rank(verdict, r);
	}
}

static void write_evidence(const struct wlb_verdict_detector *detector, const struct wlb_verdict_corruption *first,
                           struct wlb_verdict *verdict)
{
	char other[128] = "the second time", who[32] = "";
	const struct verdict_world *world = &detector->world;
	if (first->other != first->rank)
		snprintf(other, sizeof(other), "rank %d (node %s)", first->other,
		         world->node_name[world->node_of[first->other]]);
	if (first->suspects > 1)
		snprintf(who, sizeof(who), "one of %d ranks, ", first->suspects);
	snprintf(verdict->evidence, sizeof(verdict->evidence),
	         "%s%srank %d (node %s)%s computed other bits of a micro-batch than %s, in the check after step %lld: "
	         "silent data corruption",
	         who, first->suspects > 1 ? "the first of them " : "", first->rank,
	         world->node_name[world->node_of[first->rank]], first->suspects > 1 ? "," : "", other,
	         (long long)first->step);
}

/* Ranks that are suspected together are one verdict, confirmed when all of them have reported. It does not end: a rank
 * that computed wrongly once may do so again. */
void verdict_corruption_find(struct wlb_verdict_detector *detector)
{
	int32_t found = 0;
	for (int32_t r = 0; r < detector->world.ranks && found < VERDICT_OPEN_MAX; r++) {
		const struct wlb_verdict_corruption *first = &detector->corruption[r];
		if (first->suspects == 0 || first->first != r)
			continue;
		struct wlb_verdict verdict = verdict_blank(WLB_VERDICT_BAD_VALUES, WLB_VERDICT_SUSPECTED);
		add_suspects(detector, first, &verdict);
		if (verdict.rank_count == first->suspects)
			verdict.stage = WLB_VERDICT_CONFIRMED;
		verdict.since_step = first->step;
		verdict.since_s = detector->time.now_s;
		verdict.certainty = certain / first->suspects;
		write_evidence(detector, first, &verdict);
		verdict_add(detector, &verdict);
		found++;
	}
}

/* Verdicts of ranks that wait for their loader, and whether the loader waits for the file system. */
#include <math.h>
#include <stdio.h>

#include "libverdict/history.h"
#include "libverdict/kinds.h"
#include "libverdict/verdicts.h"

static const double share_gain = 0.3;
/* More than this share of all ranks, or of the ranks of a node: the cause is not a rank's own. */
static const double all_share = 0.5, node_share = 0.75;

void verdict_loader_step(struct wlb_verdict_detector *detector, const struct verdict_slot *slot)
{
	for (int32_t r = 0; r < detector->world.ranks; r++) {
		detector->scratch_more[r] = NAN;
		if (!slot->has[r] || !(slot->seconds[r] > 0.0) || slot->loader_s[r] < 0.0)
			continue;
		detector->scratch_more[r] = slot->loader_s[r] / slot->seconds[r];
		if (!(slot->loader_s[r] > 0.0) || slot->storage_s[r] < 0.0)
			continue;
		/* Weighted by how much of the step it was, so that the many short waits of a healthy run count little.
		 */
		double share = slot->storage_s[r] / slot->loader_s[r];
		double gain = share_gain * fmin(1.0, 10.0 * detector->scratch_more[r]);
		detector->storage_share[r] += gain * (fmin(share, 1.0) - detector->storage_share[r]);
	}
	verdict_shift_step(&detector->loader, detector->scratch_more, slot->step);
}

static int waits(const struct wlb_verdict_detector *detector, int32_t r)
{
	return verdict_shift_is_likely(&detector->loader, r);
}

/* What slow loaders cost. Where those of all ranks are slow there are no others to compare with. */
static double cost_percent(const struct wlb_verdict_detector *detector, int64_t since_step, int all)
{
	double percent = all ? -1.0 : verdict_history_loader_percent(detector, since_step);
	return percent >= 0.0 ? percent : verdict_history_cost_percent(detector, since_step);
}

/* Names the ranks of a node that wait, or of all nodes where it is -1, or `only` where that is a rank. */
static void name(struct wlb_verdict_detector *detector, int32_t slow, int32_t node, int32_t only)
{
	const struct verdict_shift *test = &detector->loader;
	double storage = 0.0, waited = 0.0;
	struct wlb_verdict verdict = verdict_blank(WLB_VERDICT_SLOW_LOADER, WLB_VERDICT_CONFIRMED);
	for (int32_t r = 0; r < detector->world.ranks; r++) {
		if (only >= 0 ? r != only : !waits(detector, r) || (node >= 0 && detector->world.node_of[r] != node))
			continue;
		verdict_add_rank(&verdict, r);
		storage += detector->storage_share[r];
		waited += test->mean[r] + test->constant[0];
	}
	storage /= verdict.rank_count;
	if (storage > 0.5)
		verdict.kind = WLB_VERDICT_SLOW_STORAGE;
	verdict.node = node;
	verdict.since_step = test->since_step[slow];
	verdict.since_s = verdict_history_began_s(detector, verdict.since_step);
	verdict.certainty = verdict_shift_certainty(test, slow);
	verdict.cost_percent = cost_percent(detector, verdict.since_step, node < 0 && only < 0);
	snprintf(verdict.evidence, sizeof(verdict.evidence),
	         "%d of %d ranks, the first of them rank %d (node %s), have waited for their loader for %.1f %% of "
	         "each step "
	         "since step %lld; the usual share is %.1f %%; %.0f %% of the wait the loader waited for the file "
	         "system",
	         verdict.rank_count, detector->world.ranks, verdict.ranks[0],
	         detector->world.node_name[detector->world.node_of[verdict.ranks[0]]],
	         100.0 * waited / verdict.rank_count, (long long)verdict.since_step, 100.0 * test->constant[0],
	         100.0 * storage);
	verdict_add(detector, &verdict);
}

static int32_t count_waiting(const struct wlb_verdict_detector *detector, const int32_t *ranks, int32_t count)
{
	int32_t waiting = 0;
	for (int32_t i = 0; i < count; i++)
		waiting += waits(detector, ranks[i]);
	return waiting;
}

void verdict_loader_find(struct wlb_verdict_detector *detector)
{
	const struct verdict_lists *on_node = &detector->world.on_node;
	if (detector->loader.slow_count == 0)
		return;
	/* The lists of all nodes, one after the other, have all ranks. */
	int32_t waiting = count_waiting(detector, on_node->list, detector->world.ranks);
	int all = detector->world.ranks > 1 && waiting > all_share * detector->world.ranks;
	for (int32_t r = 0; r < detector->world.ranks; r++) {
		if (!detector->loader.slow[r])
			continue;
		int32_t node = detector->world.node_of[r], ranks = on_node->first[node + 1] - on_node->first[node];
		if (all) {
			name(detector, r, -1, -1);
			return;
		}
		if (ranks > 1 &&
		    count_waiting(detector, on_node->list + on_node->first[node], ranks) >= node_share * ranks)
			name(detector, r, node, -1);
		else
			name(detector, r, -1, r);
	}
}

/* Verdicts of ranks and nodes that compute longer than their predicted work explains. */
#include <math.h>
#include <stdio.h>

#include "libverdict/cost.h"
#include "libverdict/fixed_time.h"
#include "libverdict/history.h"
#include "libverdict/kinds.h"
#include "libverdict/verdicts.h"

/* A node is slow where at least this share of its ranks is, and it has two at least. */
static const double node_share = 0.75;
/* So many steps it is waited for whether the other ranks of a slow rank's node are slow, too. */
enum { NODE_STEPS = 8 };

void verdict_compute_step(struct wlb_verdict_detector *detector, const struct verdict_slot *slot)
{
	verdict_fixed_time_step(&detector->fixed_time, &detector->compute, slot, detector->scratch);
	verdict_shift_step(&detector->compute, detector->scratch, slot->step);
	verdict_cost_step(detector, slot);
}

/* Returns how many ranks of the node are slow or likely to be. */
static int32_t slow_on_node(const struct wlb_verdict_detector *detector, int32_t node)
{
	const struct verdict_lists *on_node = &detector->world.on_node;
	int32_t slow = 0;
	for (int32_t i = on_node->first[node]; i < on_node->first[node + 1]; i++)
		slow += verdict_shift_is_likely(&detector->compute, on_node->list[i]);
	return slow;
}

/* 1 where so many ranks of the node of a slow rank may be slow, too, that it is waited for before the rank is named. */
static int is_waited_for(const struct wlb_verdict_detector *detector, int32_t r)
{
	if (verdict_is_open(detector, WLB_VERDICT_SLOW_COMPUTE, r))
		return 0;
	const struct verdict_shift *test = &detector->compute;
	const struct verdict_lists *on_node = &detector->world.on_node;
	int32_t node = detector->world.node_of[r], ranks = on_node->first[node + 1] - on_node->first[node];
	int32_t slow = slow_on_node(detector, node);
	for (int32_t i = on_node->first[node]; i < on_node->first[node + 1]; i++)
		slow += verdict_shift_is_undecided(test, on_node->list[i]);
	return slow >= node_share * ranks && test->steps - test->slow_at[r] < NODE_STEPS;
}

static void name_rank(struct wlb_verdict_detector *detector, int32_t r)
{
	const struct verdict_shift *test = &detector->compute;
	struct wlb_verdict verdict = verdict_blank(WLB_VERDICT_SLOW_COMPUTE, WLB_VERDICT_CONFIRMED);
	verdict_add_rank(&verdict, r);
	verdict.since_step = test->since_step[r];
	verdict.since_s = verdict_history_began_s(detector, verdict.since_step);
	verdict.certainty = verdict_shift_certainty(test, r);
	verdict.cost_percent = verdict_cost_percent(detector);
	snprintf(verdict.evidence, sizeof(verdict.evidence),
	         "rank %d (node %s) has computed %.1f %% longer than its peers for the same predicted work since step "
	         "%lld; "
	         "ranks differ by %.1f %% in a step (standard deviation); of its node's %d ranks %d are slow",
	         r, detector->world.node_name[detector->world.node_of[r]], 100.0 * expm1(test->mean[r]),
	         (long long)verdict.since_step, 100.0 * test->noise,
	         detector->world.on_node.first[detector->world.node_of[r] + 1] -
	                 detector->world.on_node.first[detector->world.node_of[r]],
	         slow_on_node(detector, detector->world.node_of[r]));
	verdict_add(detector, &verdict);
}

static void name_node(struct wlb_verdict_detector *detector, int32_t node, int32_t first_slow)
{
	const struct verdict_shift *test = &detector->compute;
	const struct verdict_lists *on_node = &detector->world.on_node;
	struct wlb_verdict verdict = verdict_blank(WLB_VERDICT_SLOW_NODE, WLB_VERDICT_CONFIRMED);
	double sum = 0.0;
	verdict.node = node;
	verdict.since_step = test->since_step[first_slow];
	for (int32_t i = on_node->first[node]; i < on_node->first[node + 1]; i++) {
		int32_t r = on_node->list[i];
		if (!verdict_shift_is_likely(test, r))
			continue;
		verdict_add_rank(&verdict, r);
		sum += test->mean[r];
	}
	verdict.since_s = verdict_history_began_s(detector, verdict.since_step);
	verdict.certainty = verdict_shift_certainty(test, first_slow);
	verdict.cost_percent = verdict_cost_percent(detector);
	snprintf(verdict.evidence, sizeof(verdict.evidence),
	         "%d of the %d ranks of node %s compute longer than their peers for the same predicted work since step "
	         "%lld, "
	         "by %.1f %% in the mean; ranks differ by %.1f %% in a step (standard deviation)",
	         verdict.rank_count, on_node->first[node + 1] - on_node->first[node], detector->world.node_name[node],
	         (long long)verdict.since_step, 100.0 * expm1(sum / verdict.rank_count), 100.0 * test->noise);
	verdict_add(detector, &verdict);
}

void verdict_compute_find(struct wlb_verdict_detector *detector)
{
	const struct verdict_lists *on_node = &detector->world.on_node;
	if (detector->compute.slow_count == 0)
		return;
	for (int32_t r = 0; r < detector->world.ranks; r++) {
		if (!detector->compute.slow[r])
			continue;
		int32_t node = detector->world.node_of[r], ranks = on_node->first[node + 1] - on_node->first[node];
		if (detector->world.nodes > 1 && ranks > 1 && slow_on_node(detector, node) >= node_share * ranks)
			name_node(detector, node, r);
		else if (detector->world.nodes == 1 || ranks == 1 || !is_waited_for(detector, r))
			name_rank(detector, r);
	}
}

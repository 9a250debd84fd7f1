#include "libverdict/links.h"

#include <math.h>
#include <stdio.h>

#include "libverdict/history.h"
#include "libverdict/verdicts.h"

/* A NIC is slow where at least this share of what it carries is, and it carries two at least. */
static const double nic_share = 0.75;

int32_t verdict_links_sets(const struct verdict_world *world, int32_t *set_of)
{
	for (int32_t m = 0; m < world->memberships; m++) {
		const struct verdict_group *group = &world->group[world->membership[m].group];
		set_of[m] = 2 * (int32_t)group->kind + (group->nodes > 1);
	}
	return 2 * (WLB_VERDICT_OTHER + 1);
}

void verdict_links_step(struct wlb_verdict_detector *detector, const struct verdict_slot *slot)
{
	verdict_shift_step(&detector->link, slot->transfer, slot->step);
}

/* The nodes between which the messages of a membership move; equal for a collective, of which each member reports its
 * own. */
struct ends {
	int32_t source;
	int32_t destination;
};

static struct ends ends_of(const struct verdict_world *world, int32_t m)
{
	const struct verdict_membership *members = world->membership;
	const struct verdict_group *group = &world->group[members[m].group];
	int32_t own = world->node_of[members[m].rank];
	if (group->kind != WLB_VERDICT_PP)
		return (struct ends){own, own};
	return (struct ends){world->node_of[members[group->first].rank],
	                     world->node_of[members[group->first + 1].rank]};
}

struct nic {
	int32_t carried; /* memberships whose messages go through it */
	int32_t slow;    /* of them */
};

/* Counts what the NIC of a node carries: row and column of the matrix of delays, and its members of collectives. */
static struct nic count_nic(const struct wlb_verdict_detector *detector, int32_t node)
{
	const struct verdict_world *world = &detector->world;
	struct nic nic = {0};
	for (int32_t i = world->on_node.first[node]; i < world->on_node.first[node + 1]; i++) {
		int32_t r = world->on_node.list[i];
		for (int32_t k = world->of_rank.first[r]; k < world->of_rank.first[r + 1]; k++) {
			int32_t m = world->of_rank.list[k];
			const struct verdict_group *group = &world->group[world->membership[m].group];
			if (group->nodes < 2)
				continue;
			/* The receiver reports an edge of a pipeline. */
			m = group->kind == WLB_VERDICT_PP ? group->first + 1 : m;
			if (isnan(detector->link.mean[m]))
				continue;
			nic.carried++;
			nic.slow += verdict_shift_is_likely(&detector->link, m);
		}
	}
	return nic;
}

static int is_slow_nic(struct nic nic)
{
	return nic.slow >= 2 && nic.slow >= nic_share * nic.carried;
}

/* Returns the node whose NIC explains the slow messages of a membership, -1 where none does, or both do equally well:
 * then it is the link between them. */
static int32_t find_nic(const struct wlb_verdict_detector *detector, int32_t m)
{
	struct ends ends = ends_of(&detector->world, m);
	if (detector->world.group[detector->world.membership[m].group].nodes < 2)
		return -1;
	struct nic source = count_nic(detector, ends.source), destination = count_nic(detector, ends.destination);
	if (ends.source == ends.destination)
		return is_slow_nic(source) ? ends.source : -1;
	if (is_slow_nic(source) != is_slow_nic(destination))
		return is_slow_nic(source) ? ends.source : ends.destination;
	if (!is_slow_nic(source) || source.slow == destination.slow)
		return -1;
	return source.slow > destination.slow ? ends.source : ends.destination;
}

static void fill(const struct wlb_verdict_detector *detector, int32_t m, struct wlb_verdict *verdict)
{
	const struct verdict_shift *test = &detector->link;
	verdict->since_step = test->since_step[m];
	verdict->since_s = verdict_history_began_s(detector, verdict->since_step);
	verdict->certainty = verdict_shift_certainty(test, m);
	verdict->cost_percent = verdict_history_cost_percent(detector, verdict->since_step);
}

static void name_nic(struct wlb_verdict_detector *detector, int32_t m, int32_t node)
{
	const struct verdict_lists *on_node = &detector->world.on_node;
	struct nic nic = count_nic(detector, node);
	struct wlb_verdict verdict = verdict_blank(WLB_VERDICT_SLOW_NIC, WLB_VERDICT_CONFIRMED);
	verdict.node = node;
	for (int32_t i = on_node->first[node]; i < on_node->first[node + 1]; i++)
		verdict_add_rank(&verdict, on_node->list[i]);
	fill(detector, m, &verdict);
	snprintf(verdict.evidence, sizeof(verdict.evidence),
	         "of %d streams of messages from and to node %d, %d take longer for each byte than others of their "
	         "kind since "
	         "step %lld, one of them, of %s, by %.0f %%; streams differ by %.1f %% in a step (standard deviation)",
	         nic.carried, node, nic.slow, (long long)verdict.since_step,
	         detector->world.group[detector->world.membership[m].group].name, 100.0 * expm1(detector->link.mean[m]),
	         100.0 * detector->link.noise);
	verdict_found(detector, &verdict);
}

static void name_link(struct wlb_verdict_detector *detector, int32_t m)
{
	const struct verdict_world *world = &detector->world;
	const struct verdict_group *group = &world->group[world->membership[m].group];
	struct wlb_verdict verdict = verdict_blank(WLB_VERDICT_SLOW_LINK, WLB_VERDICT_CONFIRMED);
	struct ends ends = ends_of(world, m);
	if (group->kind == WLB_VERDICT_PP)
		verdict_add_rank(&verdict, world->membership[group->first].rank);
	verdict_add_rank(&verdict, world->membership[m].rank);
	verdict.group = world->membership[m].group;
	fill(detector, m, &verdict);
	snprintf(verdict.evidence, sizeof(verdict.evidence),
	         "messages of rank %d in %s (from node %d to node %d) take %.0f %% longer for each byte than others of "
	         "their "
	         "kind since step %lld; they differ by %.1f %% in a step (standard deviation)",
	         world->membership[m].rank, group->name, ends.source, ends.destination,
	         100.0 * expm1(detector->link.mean[m]), (long long)verdict.since_step, 100.0 * detector->link.noise);
	verdict_found(detector, &verdict);
}

void verdict_links_find(struct wlb_verdict_detector *detector)
{
	if (detector->link.slow_count == 0)
		return;
	for (int32_t m = 0; m < detector->world.memberships; m++) {
		if (!detector->link.slow[m])
			continue;
		int32_t node = find_nic(detector, m);
		if (node >= 0)
			name_nic(detector, m, node);
		else
			name_link(detector, m);
	}
}

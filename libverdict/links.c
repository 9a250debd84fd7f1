/* Verdicts of slow messages: slow NICs (nics.c), and links where no NIC explains them. */
#include <math.h>
#include <stdio.h>

#include "libverdict/delays.h"
#include "libverdict/history.h"
#include "libverdict/kinds.h"
#include "libverdict/streams.h"
#include "libverdict/verdicts.h"

enum { KINDS = WLB_VERDICT_OTHER + 1 };

int32_t verdict_links_sets(const struct verdict_world *world, int32_t *set_of)
{
	for (int32_t m = 0; m < world->memberships; m++) {
		const struct verdict_group *group = &world->group[world->membership[m].group];
		int32_t like = group->alike > 0 ? KINDS + group->alike - 1 : (int32_t)group->kind;
		set_of[m] = 2 * like + (group->nodes > 1);
	}
	return 2 * (KINDS + world->most_alike);
}

void verdict_links_step(struct wlb_verdict_detector *detector, const struct verdict_slot *slot)
{
	if (slot->has_transfers && verdict_shift_step(&detector->link, slot->transfer, slot->step))
		verdict_delays_step(detector);
}

static void fill(const struct wlb_verdict_detector *detector, int32_t m, struct wlb_verdict *verdict)
{
	const struct verdict_shift *test = &detector->link;
	verdict->since_step = test->since_step[m];
	verdict->since_s = verdict_history_began_s(detector, verdict->since_step);
	verdict->certainty = verdict_shift_certainty(test, m);
	verdict->cost_percent = verdict_history_cost_percent(detector, verdict->since_step);
}

/* Names the node if its NIC explains slow messages. Returns 1 where it does. */
static int name_nic(struct wlb_verdict_detector *detector, int32_t m, int32_t node)
{
	const struct verdict_lists *on_node = &detector->world.on_node;
	const struct verdict_nic *nic = &detector->nic[node];
	if (nic->state != VERDICT_NIC_SLOW)
		return 0;
	struct wlb_verdict verdict = verdict_blank(WLB_VERDICT_SLOW_NIC, WLB_VERDICT_CONFIRMED);
	verdict.node = node;
	for (int32_t i = on_node->first[node]; i < on_node->first[node + 1]; i++)
		verdict_add_rank(&verdict, on_node->list[i]);
	fill(detector, m, &verdict);
	snprintf(verdict.evidence, sizeof(verdict.evidence),
	         "of %d streams of messages from and to node %s, %d take longer for each byte than others of their "
	         "kind since step %lld; in the matrix of delays its row (source) takes %.0f %% longer, its column "
	         "(destination) %.0f %%, the medians of the last steps; streams differ by %.1f %% in a step (standard "
	         "deviation)",
	         nic->carried, detector->world.node_name[node], nic->slow, (long long)verdict.since_step,
	         verdict_delays_row_percent(detector, node), verdict_delays_column_percent(detector, node),
	         100.0 * detector->link.noise);
	verdict_add(detector, &verdict);
	return 1;
}

/* Writes whose messages the stream has, and between which nodes. */
static void describe_stream(const struct verdict_world *world, int32_t m, char *text, size_t size)
{
	const struct verdict_group *group = &world->group[world->membership[m].group];
	struct verdict_stream stream = verdict_stream_of(world, m);
	if (verdict_stream_is_shared(world, m))
		snprintf(text, size, "of all %d ranks in %s, of ranks %d and %d among others", group->count,
		         group->name, world->membership[group->first].rank,
		         world->membership[group->first + group->count - 1].rank);
	else
		snprintf(text, size, "of rank %d in %s (from node %s to node %s)", world->membership[m].rank,
		         group->name, world->node_name[world->node_of[stream.source]],
		         world->node_name[world->node_of[stream.destination]]);
}

static void name_link(struct wlb_verdict_detector *detector, int32_t m)
{
	const struct verdict_world *world = &detector->world;
	const struct verdict_group *group = &world->group[world->membership[m].group];
	struct wlb_verdict verdict = verdict_blank(WLB_VERDICT_SLOW_LINK, WLB_VERDICT_CONFIRMED);
	char stream[256];
	if (group->kind == WLB_VERDICT_PP || verdict_stream_is_shared(world, m))
		for (int32_t i = group->first; i < group->first + group->count; i++)
			verdict_add_rank(&verdict, world->membership[i].rank);
	else
		verdict_add_rank(&verdict, world->membership[m].rank);
	verdict.group = world->membership[m].group;
	fill(detector, m, &verdict);
	describe_stream(world, m, stream, sizeof(stream));
	snprintf(verdict.evidence, sizeof(verdict.evidence),
	         "messages %s take %.0f %% longer for each byte than others of "
	         "their kind since step %lld; they differ by %.1f %% in a step (standard deviation)",
	         stream, 100.0 * expm1(detector->link.mean[m]), (long long)verdict.since_step,
	         100.0 * detector->link.noise);
	verdict_add(detector, &verdict);
}

/* Names the nodes whose NIC explains a slow stream. Returns how many. */
static int name_nics_of(struct wlb_verdict_detector *detector, int32_t m)
{
	const struct verdict_world *world = &detector->world;
	const struct verdict_group *group = &world->group[world->membership[m].group];
	struct verdict_stream stream = verdict_stream_of(world, m);
	int named = 0;
	if (!stream.crosses)
		return 0;
	if (!verdict_stream_is_shared(world, m))
		return name_nic(detector, m, world->node_of[stream.source]) +
		       name_nic(detector, m, world->node_of[stream.destination]);
	for (int32_t i = group->first; i < group->first + group->count; i++)
		named += name_nic(detector, m, world->node_of[world->membership[i].rank]);
	return named;
}

void verdict_links_find(struct wlb_verdict_detector *detector)
{
	if (detector->link.slow_count == 0)
		return;
	verdict_nics_find(detector);
	for (int32_t m = 0; m < detector->world.memberships; m++) {
		if (detector->link.slow[m] && name_nics_of(detector, m) == 0)
			name_link(detector, m);
	}
}

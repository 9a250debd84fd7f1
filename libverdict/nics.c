/*
 * Which NICs are slow: the fewest that explain the slow streams of messages. In the matrix of delays (row: source node,
 * column: destination node) a NIC is the row and the column of its node, so that rows and columns are found first, and
 * only cells that none of them explains are links.
 */
#include <math.h>

#include "libverdict/kinds.h"
#include "libverdict/streams.h"

/* A NIC is slow where at least this share of what it carries is, and it carries two at least. */
static const double nic_share = 0.75;

/* Which streams of a node are not counted. */
enum omission {
	NONE,
	TO_SLOW,       /* streams from and to nodes whose NIC is slow, which explains the streams */
	TO_CANDIDATES, /* these, and streams from and to nodes whose NIC might be slow as well */
	TO_STRONGER,   /* streams of slow NICs, and of candidates of which as many or more streams are slow */
};

static int is_omitted(const struct verdict_nic *mine, const struct verdict_nic *other, enum omission omission)
{
	if (omission == NONE || other->state == VERDICT_NIC_FINE)
		return 0;
	if (other->state == VERDICT_NIC_SLOW || omission == TO_CANDIDATES)
		return 1;
	return omission == TO_STRONGER && other->unexplained >= mine->unexplained;
}

static int is_omitted_on(const struct wlb_verdict_detector *detector, const struct verdict_nic *mine, int32_t node,
                         int32_t other_rank, enum omission omission)
{
	int32_t other = detector->world.node_of[other_rank];
	return other != node && is_omitted(mine, &detector->nic[other], omission);
}

/* Whether a stream of a rank on the node is counted there. Where the members of a group have one stream together, it
 * is counted once on each node of the group, and goes to all other nodes. */
static int is_counted(const struct wlb_verdict_detector *detector, const struct verdict_nic *mine, int32_t m,
                      enum omission omission)
{
	const struct verdict_world *world = &detector->world;
	const struct verdict_group *group = &world->group[world->membership[m].group];
	struct verdict_stream stream = verdict_stream_of(world, m);
	int32_t r = world->membership[m].rank, node = world->node_of[r];
	if (!stream.crosses || isnan(detector->link.mean[stream.membership]))
		return 0;
	if (!verdict_stream_is_shared(world, m))
		return !is_omitted_on(detector, mine, node, stream.source == r ? stream.destination : stream.source,
		                      omission);
	for (int32_t i = group->first; i < m; i++)
		if (world->node_of[world->membership[i].rank] == node)
			return 0;
	for (int32_t i = group->first; i < group->first + group->count; i++)
		if (is_omitted_on(detector, mine, node, world->membership[i].rank, omission))
			return 0;
	return 1;
}

/* Counts what the NIC of a node carries: row and column of the matrix of delays, and its ranks' part of collectives. */
static struct verdict_nic count_streams(const struct wlb_verdict_detector *detector, int32_t node,
                                        enum omission omission)
{
	const struct verdict_world *world = &detector->world;
	const struct verdict_nic *mine = &detector->nic[node];
	struct verdict_nic counted = *mine;
	counted.carried = counted.slow = 0;
	for (int32_t i = world->on_node.first[node]; i < world->on_node.first[node + 1]; i++) {
		int32_t r = world->on_node.list[i];
		for (int32_t k = world->of_rank.first[r]; k < world->of_rank.first[r + 1]; k++) {
			int32_t m = world->of_rank.list[k];
			if (!is_counted(detector, mine, m, omission))
				continue;
			counted.carried++;
			counted.slow +=
				verdict_shift_is_likely(&detector->link, verdict_stream_of(world, m).membership);
		}
	}
	return counted;
}

static int is_slow(struct verdict_nic nic)
{
	return nic.slow >= 2 && nic.slow >= nic_share * nic.carried;
}

/* Decides candidates by the streams that no other candidate explains. Returns 1 where it has decided any. */
static int decide_by_own(struct wlb_verdict_detector *detector)
{
	int decided = 0;
	for (int32_t n = 0; n < detector->world.nodes; n++) {
		struct verdict_nic *nic = &detector->nic[n];
		if (nic->state != VERDICT_NIC_CANDIDATE)
			continue;
		struct verdict_nic rest = count_streams(detector, n, TO_SLOW);
		nic->unexplained = rest.slow;
		if (is_slow(count_streams(detector, n, TO_CANDIDATES)))
			nic->state = VERDICT_NIC_SLOW;
		else if (!is_slow(rest))
			nic->state = VERDICT_NIC_FINE;
		decided |= nic->state != VERDICT_NIC_CANDIDATE;
	}
	return decided;
}

/* Where several candidates explain the same streams, the candidate that explains more streams is slow. Where two
 * candidates explain equally many streams, and nothing else, neither is decided: the link between them is slow. */
static int decide_by_number(struct wlb_verdict_detector *detector)
{
	for (int32_t n = 0; n < detector->world.nodes; n++) {
		struct verdict_nic *nic = &detector->nic[n];
		if (nic->state != VERDICT_NIC_CANDIDATE || !is_slow(count_streams(detector, n, TO_STRONGER)))
			continue;
		nic->state = VERDICT_NIC_SLOW;
		return 1;
	}
	return 0;
}

void verdict_nics_find(struct wlb_verdict_detector *detector)
{
	for (int32_t n = 0; n < detector->world.nodes; n++) {
		struct verdict_nic nic = count_streams(detector, n, NONE);
		nic.state = is_slow(nic) ? VERDICT_NIC_CANDIDATE : VERDICT_NIC_FINE;
		detector->nic[n] = nic;
	}
	/* Each turn decides one candidate at least. */
	while (decide_by_own(detector) || decide_by_number(detector))
		;
}

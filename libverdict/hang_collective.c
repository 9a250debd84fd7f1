/* Verdicts of calls that all members have entered and that some or all members do not leave: hangs in communication. */
#include <math.h>
#include <stdio.h>

#include "libverdict/bounds.h"
#include "libverdict/kinds.h"
#include "libverdict/verdicts.h"
#include "libverdict/wait_for.h"

static const double fresh_s = 2.5;
enum { STUCK_CALLS_MAX = 4096 };

/* Calls that hang at the moment. */
struct stuck_calls {
	int32_t group[STUCK_CALLS_MAX];
	int32_t count;
};

/* Returns how long the oldest call of a group has hung since all members were seen to have entered it, 0 where a
 * member has not reported lately, is stopped or gone. */
static double call_stuck_s(const struct wlb_verdict_detector *detector, int32_t g)
{
	const struct verdict_group *group = &detector->world.group[g];
	for (int32_t m = group->first; m < group->first + group->count; m++) {
		int32_t r = detector->world.membership[m].rank;
		const struct verdict_rank *rank = &detector->rank[r];
		if (rank->process == WLB_VERDICT_GONE || rank->process == WLB_VERDICT_STOPPED || !rank->seen ||
		    verdict_silent_s(detector, r) > fresh_s)
			return 0.0;
	}
	return detector->time.job_s - detector->waits.complete_job_s[g];
}

/* The bound for the oldest call of a group. Libraries of communication connect in their first calls, which may take
 * minutes, so that start-up and the first steps have a bound of patience_s at least. */
static double bound_s(const struct wlb_verdict_detector *detector, int32_t g, double least_s)
{
	const struct verdict_rank *waiter = &detector->rank[detector->waits.oldest_waiter[g]];
	double call_s = verdict_bound_transfer_s(detector, least_s);
	return verdict_in_warm_up(detector, waiter) ? fmax(call_s, detector->options.patience_s) : call_s;
}

static void find_stuck(const struct wlb_verdict_detector *detector, struct stuck_calls *calls)
{
	calls->count = 0;
	for (int32_t g = 0; g < detector->world.groups && calls->count < STUCK_CALLS_MAX; g++) {
		if (detector->waits.oldest[g] == 0 || detector->waits.oldest_behind[g] > 0)
			continue;
		if (call_stuck_s(detector, g) >= bound_s(detector, g, detector->options.suspect_s))
			calls->group[calls->count++] = g;
	}
}

static int touches(const struct verdict_world *world, int32_t g, int32_t node)
{
	const struct verdict_group *group = &world->group[g];
	for (int32_t m = group->first; m < group->first + group->count; m++)
		if (world->node_of[world->membership[m].rank] == node)
			return 1;
	return 0;
}

/* The nodes that all stuck calls have in common, where there are several calls: the fewer, the more that tells. */
enum { COMMON_NODES_MAX = 2 };

struct common_nodes {
	int32_t node[COMMON_NODES_MAX];
	int32_t count; /* 0: none, or more than COMMON_NODES_MAX */
};

static int is_common(const struct common_nodes *common, int32_t node)
{
	for (int32_t i = 0; i < common->count; i++)
		if (common->node[i] == node)
			return 1;
	return 0;
}

static struct common_nodes find_common(const struct verdict_world *world, const struct stuck_calls *calls)
{
	const struct verdict_group *first = &world->group[calls->group[0]];
	struct common_nodes common = {.count = 0};
	for (int32_t m = first->first; calls->count > 1 && m < first->first + first->count; m++) {
		int32_t node = world->node_of[world->membership[m].rank], in_all = !is_common(&common, node);
		for (int32_t i = 1; i < calls->count && in_all; i++)
			in_all = touches(world, calls->group[i], node);
		if (in_all && common.count == COMMON_NODES_MAX)
			return (struct common_nodes){.count = 0};
		if (in_all)
			common.node[common.count++] = node;
	}
	return common;
}

/* Names the pair of a ring between which nothing moves: the member that has received least, and the member before it.
 * What the others have received is what was on its way behind the gap (Mycroft: Deng et al. 2025, tracing the state of
 * collectives). Returns 0 where the members have not reported it, or equally much, or where some have left the call. */
static int name_pair(const struct wlb_verdict_detector *detector, int32_t g, struct wlb_verdict *verdict)
{
	const struct verdict_group *group = &detector->world.group[g];
	const struct verdict_membership *members = &detector->world.membership[group->first];
	int32_t least = -1, equal = 0;
	for (int32_t m = 0; m < group->count; m++) {
		const struct verdict_rank *rank = &detector->rank[members[m].rank];
		double bytes = rank->received_bytes;
		if (bytes < 0.0 || rank->group != g || rank->sequence != verdict->sequence)
			return 0;
		double most = least < 0 ? INFINITY : detector->rank[members[least].rank].received_bytes;
		equal = bytes < most ? 1 : equal + (bytes == most);
		least = bytes < most ? m : least;
	}
	if (equal != 1)
		return 0;
	verdict_add_rank(verdict, members[(least + group->count - 1) % group->count].rank);
	verdict_add_rank(verdict, members[least].rank);
	return 1;
}

/* By what the ranks of a call are named. */
enum named_by { BY_NODE, BY_EDGE, BY_BYTES, BY_PAIR_OF_NODES, BY_NOTHING };

static void describe(const struct wlb_verdict_detector *detector, const struct stuck_calls *calls, double confirm_s,
                     const struct common_nodes *common, enum named_by named_by, struct wlb_verdict *verdict)
{
	const struct verdict_group *group = &detector->world.group[verdict->group];
	int length = snprintf(verdict->evidence, sizeof(verdict->evidence),
	                      "all %d members have entered call %llu of %s, %.1f s ago or before, and it has not ended "
	                      "(bound %.1f s); %d such calls stand still, %d of %d ranks are blocked in calls",
	                      group->count, (unsigned long long)verdict->sequence, group->name,
	                      call_stuck_s(detector, verdict->group), confirm_s, calls->count,
	                      verdict_count_calling(detector), detector->world.ranks);
	if (length < 0 || (size_t)length >= sizeof(verdict->evidence))
		return;
	char *end = verdict->evidence + length;
	size_t space = sizeof(verdict->evidence) - (size_t)length;
	if (named_by == BY_NODE)
		snprintf(end, space, "; node %s alone is in all of them", detector->world.node_name[verdict->node]);
	else if (named_by == BY_EDGE)
		snprintf(end, space, "; rank %d sends and rank %d receives", verdict->ranks[0], verdict->ranks[1]);
	else if (named_by == BY_BYTES)
		snprintf(end, space, "; rank %d has received least, %.0f bytes, from rank %d", verdict->ranks[1],
		         detector->rank[verdict->ranks[1]].received_bytes, verdict->ranks[0]);
	else if (named_by == BY_PAIR_OF_NODES)
		snprintf(end, space, "; nodes %s and %s alone are in all of them",
		         detector->world.node_name[common->node[0]], detector->world.node_name[common->node[1]]);
	else
		snprintf(end, space, "; nothing tells which of its members it is");
}

static struct wlb_verdict verdict_of_call(const struct wlb_verdict_detector *detector, int32_t g, int confirmed)
{
	struct wlb_verdict verdict = verdict_blank(WLB_VERDICT_HANG_COMMUNICATION,
	                                           confirmed ? WLB_VERDICT_CONFIRMED : WLB_VERDICT_SUSPECTED);
	const struct verdict_rank *waiter = &detector->rank[detector->waits.oldest_waiter[g]];
	verdict.group = g;
	verdict.sequence = detector->waits.oldest[g];
	verdict.since_s = waiter->progress_s;
	verdict.since_step = waiter->step;
	return verdict;
}

/* Adds the members of a call that are on one of the nodes; all, where none is given. */
static void add_members(const struct verdict_world *world, int32_t g, const struct common_nodes *nodes,
                        struct wlb_verdict *verdict)
{
	const struct verdict_group *group = &world->group[g];
	for (int32_t m = group->first; m < group->first + group->count; m++) {
		int32_t rank = world->membership[m].rank;
		if (nodes->count == 0 || is_common(nodes, world->node_of[rank]))
			verdict_add_rank(verdict, rank);
	}
}

/* Adds the ranks between which it is, as few as can be told. */
static enum named_by name_ranks(const struct wlb_verdict_detector *detector, int32_t g,
                                const struct common_nodes *common, struct wlb_verdict *verdict)
{
	static const struct common_nodes all = {.count = 0};
	if (common->count == 1) {
		verdict->node = common->node[0];
		add_members(&detector->world, g, common, verdict);
		return BY_NODE;
	}
	if (detector->world.group[g].kind == WLB_VERDICT_PP) {
		add_members(&detector->world, g, &all, verdict);
		return BY_EDGE;
	}
	if (name_pair(detector, g, verdict))
		return BY_BYTES;
	add_members(&detector->world, g, common, verdict);
	return common->count == COMMON_NODES_MAX ? BY_PAIR_OF_NODES : BY_NOTHING;
}

void verdict_hang_collective_find(struct wlb_verdict_detector *detector)
{
	static const double certainty[] = {
		[BY_NODE] = 0.9, [BY_EDGE] = 0.95, [BY_BYTES] = 0.95, [BY_PAIR_OF_NODES] = 0.8, [BY_NOTHING] = 0.6};
	struct stuck_calls calls;
	find_stuck(detector, &calls);
	if (calls.count == 0)
		return;
	struct common_nodes common = find_common(&detector->world, &calls);
	for (int32_t i = 0; i < calls.count; i++) {
		int32_t g = calls.group[i];
		double confirm_s = bound_s(detector, g, detector->options.confirm_s);
		struct wlb_verdict verdict = verdict_of_call(detector, g, call_stuck_s(detector, g) >= confirm_s);
		enum named_by named_by = name_ranks(detector, g, &common, &verdict);
		verdict.certainty = certainty[named_by];
		if (verdict.stage == WLB_VERDICT_SUSPECTED)
			verdict.certainty /= 2.0;
		describe(detector, &calls, confirm_s, &common, named_by, &verdict);
		verdict_add(detector, &verdict);
	}
}

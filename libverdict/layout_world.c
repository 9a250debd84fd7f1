/* Makes the world of a tp x cp x pp x dp layout. */
#include <stdio.h>
#include <stdlib.h>

#include "libverdict/error.h"

enum { LAYOUT_RANKS_MAX = 1 << 20, DIMENSIONS = 4 };

/* What wlb_verdict_world_of_layout returns: the public part first, and the arrays that it points to. */
struct owned_world {
	struct wlb_verdict_world public;
	int32_t *node_of, *peers_of, *members;
	struct wlb_verdict_group *groups;
	int32_t member_count;
};

static void add_member(struct owned_world *world, int32_t rank)
{
	world->members[world->member_count++] = rank;
}

static void end_group(struct owned_world *world, enum wlb_verdict_group_kind kind, int32_t first)
{
	world->groups[world->public.group_count++] = (struct wlb_verdict_group){
		.kind = kind, .members = world->members + first, .count = world->member_count - first};
}

/* Adds the groups of a dimension: ranks whose places differ in it alone, which are `stride` apart. */
static void add_groups(struct owned_world *world, enum wlb_verdict_group_kind kind, int32_t stride, int32_t degree)
{
	for (int32_t rank = 0; degree > 1 && rank < world->public.ranks; rank++) {
		if (rank / stride % degree != 0)
			continue;
		int32_t first = world->member_count;
		for (int32_t i = 0; i < degree; i++)
			add_member(world, rank + i * stride);
		end_group(world, kind, first);
	}
}

/* Adds the edges between a rank and its successor in the pipeline, in both directions. */
static void add_edges(struct owned_world *world, int32_t stride, int32_t degree)
{
	for (int32_t rank = 0; rank < world->public.ranks; rank++) {
		if (rank / stride % degree == degree - 1)
			continue;
		for (int backward = 0; backward < 2; backward++) {
			int32_t first = world->member_count;
			add_member(world, backward ? rank + stride : rank);
			add_member(world, backward ? rank : rank + stride);
			end_group(world, WLB_VERDICT_PP, first);
		}
	}
}

static int64_t count_ranks(const struct wlb_verdict_layout *layout)
{
	const int32_t degrees[DIMENSIONS] = {layout->tp, layout->cp, layout->pp, layout->dp};
	int64_t ranks = 1;
	for (int i = 0; i < DIMENSIONS; i++) {
		if (degrees[i] < 1 || degrees[i] > LAYOUT_RANKS_MAX)
			return -1;
		ranks *= degrees[i];
		if (ranks > LAYOUT_RANKS_MAX)
			return -1;
	}
	return ranks;
}

static int allocate(struct owned_world *world, size_t ranks)
{
	/* A rank is in a tp, a cp and a dp group and that of all, and sends along at most two edges; an edge has two
	 * members. */
	world->node_of = calloc(ranks, sizeof(*world->node_of));
	world->peers_of = calloc(ranks, sizeof(*world->peers_of));
	world->members = calloc(ranks * 8, sizeof(*world->members));
	world->groups = calloc(ranks * 4 + 1, sizeof(*world->groups));
	return world->node_of == NULL || world->peers_of == NULL || world->members == NULL || world->groups == NULL ? -1
	                                                                                                            : 0;
}

static void fill(struct owned_world *world, const struct wlb_verdict_layout *layout)
{
	int32_t inner = layout->tp * layout->cp, ranks = world->public.ranks;
	for (int32_t r = 0; r < ranks; r++) {
		world->node_of[r] = r / layout->ranks_per_node;
		world->peers_of[r] = r / inner % layout->pp;
	}
	add_groups(world, WLB_VERDICT_TP, 1, layout->tp);
	add_groups(world, WLB_VERDICT_CP, layout->tp, layout->cp);
	add_edges(world, inner, layout->pp);
	add_groups(world, WLB_VERDICT_DP, inner * layout->pp, layout->dp);
	add_groups(world, WLB_VERDICT_WORLD, 1, ranks);
}

struct wlb_verdict_world *wlb_verdict_world_of_layout(const struct wlb_verdict_layout *layout,
                                                      struct wlb_verdict_error *error)
{
	int64_t ranks = count_ranks(layout);
	if (ranks < 0 || layout->ranks_per_node < 1) {
		verdict_fail(error,
		             "tp=%d,cp=%d,pp=%d,dp=%d with %d ranks on a node: each must be at least 1, with at most "
		             "%d ranks",
		             layout->tp, layout->cp, layout->pp, layout->dp, layout->ranks_per_node, LAYOUT_RANKS_MAX);
		return NULL;
	}
	struct owned_world *world = calloc(1, sizeof(*world));
	if (world == NULL || allocate(world, (size_t)ranks) < 0) {
		wlb_verdict_world_free(world != NULL ? &world->public : NULL);
		verdict_fail(error, "out of memory for %lld ranks", (long long)ranks);
		return NULL;
	}
	world->public = (struct wlb_verdict_world){
		.ranks = (int32_t)ranks,
		.nodes = (int32_t)((ranks + layout->ranks_per_node - 1) / layout->ranks_per_node),
		.node_of = world->node_of,
		.peers_of = world->peers_of,
		.groups = world->groups};
	fill(world, layout);
	return &world->public;
}

void wlb_verdict_world_free(struct wlb_verdict_world *given)
{
	if (given == NULL)
		return;
	struct owned_world *world = (struct owned_world *)given;
	free(world->node_of);
	free(world->peers_of);
	free(world->members);
	free(world->groups);
	free(world);
}

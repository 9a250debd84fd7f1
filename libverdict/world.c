#include "libverdict/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libverdict/error.h"

enum { RANKS_MAX = 1 << 20 };

static const char *const kind_names[] = {"tp", "cp", "pp", "dp", "world", "other"};

int verdict_lists_build(struct verdict_lists *lists, const int32_t *key_of, int32_t count, int32_t keys)
{
	lists->first = calloc((size_t)keys + 2, sizeof(*lists->first));
	lists->list = calloc((size_t)count + 1, sizeof(*lists->list));
	if (lists->first == NULL || lists->list == NULL)
		return -1;
	/* first[k + 1] is where the next item of key k goes, until all items are in their places. */
	for (int32_t i = 0; i < count; i++)
		lists->first[key_of[i] + 2]++;
	for (int32_t k = 0; k < keys; k++)
		lists->first[k + 2] += lists->first[k + 1];
	for (int32_t i = 0; i < count; i++)
		lists->list[lists->first[key_of[i] + 1]++] = i;
	return 0;
}

void verdict_lists_free(struct verdict_lists *lists)
{
	free(lists->first);
	free(lists->list);
}

static int check_keys(const char *field, const int32_t *keys, int32_t ranks, int32_t below,
                      struct wlb_verdict_error *error)
{
	for (int32_t r = 0; r < ranks; r++)
		if (keys[r] < 0 || keys[r] >= below)
			return verdict_fail(error, "%s of rank %d is %d: it must be 0 to %d", field, r, keys[r],
			                    below - 1);
	return 0;
}

static int check_world(const struct wlb_verdict_world *given, struct wlb_verdict_error *error)
{
	if (given->ranks < 1 || given->ranks > RANKS_MAX)
		return verdict_fail(error, "ranks is %d: it must be 1 to %d", given->ranks, RANKS_MAX);
	if (given->nodes < 1 || given->nodes > given->ranks)
		return verdict_fail(error, "nodes is %d: it must be 1 to the %d ranks", given->nodes, given->ranks);
	if (given->node_of == NULL || (given->groups == NULL && given->group_count > 0) || given->group_count < 0)
		return verdict_fail(error, "node_of or groups is missing");
	if (check_keys("node_of", given->node_of, given->ranks, given->nodes, error) < 0)
		return -1;
	if (given->peers_of != NULL && check_keys("peers_of", given->peers_of, given->ranks, given->ranks, error) < 0)
		return -1;
	int64_t members = 0;
	for (int32_t g = 0; g < given->group_count; g++) {
		const struct wlb_verdict_group *group = &given->groups[g];
		if (group->kind < WLB_VERDICT_TP || group->kind > WLB_VERDICT_OTHER)
			return verdict_fail(error, "group %d: kind %d: use a value of enum wlb_verdict_group_kind", g,
			                    (int)group->kind);
		if (group->members == NULL || group->count < 2 || group->count > given->ranks)
			return verdict_fail(error, "group %d has %d members: it must have 2 to %d", g, group->count,
			                    given->ranks);
		if (group->kind == WLB_VERDICT_PP && group->count != 2)
			return verdict_fail(error, "group %d is an edge of a pipeline with %d members, not 2", g,
			                    group->count);
		if (group->kind == WLB_VERDICT_PP && group->has_one_transfer)
			return verdict_fail(error,
			                    "group %d: has_one_transfer must be 0 for an edge of a pipeline, because "
			                    "its messages are timed by the receiver",
			                    g);
		if (group->alike < 0 || group->alike > given->group_count)
			return verdict_fail(error, "alike of group %d is %d: it must be 0 to %d", g, group->alike,
			                    given->group_count);
		members += group->count;
	}
	if (members > INT32_MAX / 4)
		return verdict_fail(error, "the groups have %lld members in all, more than %d", (long long)members,
		                    INT32_MAX / 4);
	return 0;
}

/* Returns 1 more than the greatest set of peers. */
static int32_t copy_peers(struct verdict_world *world, const int32_t *peers_of)
{
	int32_t sets = 1;
	for (int32_t r = 0; r < world->ranks; r++) {
		world->peers_of[r] = peers_of != NULL ? peers_of[r] : 0;
		sets = world->peers_of[r] >= sets ? world->peers_of[r] + 1 : sets;
	}
	return sets;
}

static void copy_node_names(struct verdict_world *world, const char *const *names)
{
	for (int32_t node = 0; node < world->nodes; node++)
		if (names != NULL)
			snprintf(world->node_name[node], sizeof(*world->node_name), "%s", names[node]);
		else
			snprintf(world->node_name[node], sizeof(*world->node_name), "%d", node);
}

static int copy_group(struct verdict_world *world, const struct wlb_verdict_group *given, int32_t g, int32_t *last_of,
                      struct wlb_verdict_error *error)
{
	struct verdict_group *group = &world->group[g];
	*group = (struct verdict_group){.kind = given->kind,
	                                .first = world->memberships,
	                                .count = given->count,
	                                .nodes = 1,
	                                .has_one_transfer = given->has_one_transfer != 0,
	                                .alike = given->alike};
	if (given->alike > world->most_alike)
		world->most_alike = given->alike;
	if (given->name != NULL)
		snprintf(group->name, sizeof(group->name), "%s", given->name);
	else
		snprintf(group->name, sizeof(group->name), "%s group %d", kind_names[given->kind], g);
	for (int32_t m = 0; m < given->count; m++) {
		int32_t rank = given->members[m];
		if (rank < 0 || rank >= world->ranks)
			return verdict_fail(error, "group %d has rank %d: ranks are 0 to %d", g, rank,
			                    world->ranks - 1);
		if (last_of[rank] == g + 1)
			return verdict_fail(error, "group %d has rank %d twice", g, rank);
		last_of[rank] = g + 1;
		world->membership[world->memberships++] = (struct verdict_membership){rank, g};
		if (world->node_of[rank] != world->node_of[given->members[0]])
			group->nodes = 2;
	}
	return 0;
}

static int list_memberships(struct verdict_world *world)
{
	int32_t *rank_of = calloc((size_t)world->memberships + 1, sizeof(*rank_of));
	if (rank_of == NULL)
		return -1;
	for (int32_t m = 0; m < world->memberships; m++)
		rank_of[m] = world->membership[m].rank;
	int failed = verdict_lists_build(&world->of_rank, rank_of, world->memberships, world->ranks) < 0 ||
	             verdict_lists_build(&world->on_node, world->node_of, world->ranks, world->nodes) < 0;
	free(rank_of);
	if (failed)
		return -1;
	for (int32_t i = 0; i < world->memberships; i++)
		world->listed_group[i] = world->membership[world->of_rank.list[i]].group;
	return 0;
}

int verdict_world_copy(struct verdict_world *world, const struct wlb_verdict_world *given,
                       struct wlb_verdict_error *error)
{
	*world = (struct verdict_world){0};
	if (check_world(given, error) < 0)
		return -1;
	size_t members = 0, ranks = (size_t)given->ranks;
	for (int32_t g = 0; g < given->group_count; g++)
		members += (size_t)given->groups[g].count;
	world->ranks = given->ranks;
	world->nodes = given->nodes;
	world->groups = given->group_count;
	world->node_of = calloc(ranks, sizeof(*world->node_of));
	world->peers_of = calloc(ranks, sizeof(*world->peers_of));
	world->node_name = calloc((size_t)given->nodes, sizeof(*world->node_name));
	world->group = calloc((size_t)given->group_count + 1, sizeof(*world->group));
	world->membership = calloc(members + 1, sizeof(*world->membership));
	world->listed_group = calloc(members + 1, sizeof(*world->listed_group));
	int32_t *last_of = calloc(ranks, sizeof(*last_of));
	int result = -1;
	if (world->node_of == NULL || world->peers_of == NULL || world->node_name == NULL || world->group == NULL ||
	    world->membership == NULL || world->listed_group == NULL || last_of == NULL)
		goto out;
	memcpy(world->node_of, given->node_of, ranks * sizeof(*world->node_of));
	copy_node_names(world, given->node_names);
	world->peer_sets = copy_peers(world, given->peers_of);
	for (int32_t g = 0; g < given->group_count; g++)
		if (copy_group(world, &given->groups[g], g, last_of, error) < 0) {
			free(last_of);
			return -1;
		}
	result = list_memberships(world);
out:
	free(last_of);
	return result < 0 ? verdict_fail(error, "out of memory for %d ranks", given->ranks) : 0;
}

void verdict_world_free(struct verdict_world *world)
{
	free(world->node_of);
	free(world->node_name);
	free(world->peers_of);
	free(world->group);
	free(world->membership);
	free(world->listed_group);
	verdict_lists_free(&world->of_rank);
	verdict_lists_free(&world->on_node);
}

int32_t verdict_world_find(const struct verdict_world *world, int32_t rank, int32_t group)
{
	if (rank < 0 || rank >= world->ranks)
		return -1;
	for (int32_t i = world->of_rank.first[rank]; i < world->of_rank.first[rank + 1]; i++)
		if (world->listed_group[i] == group)
			return world->of_rank.list[i];
	return -1;
}

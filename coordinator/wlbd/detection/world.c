#include "coordinator/wlbd/detection/world.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "common/group_places.h"

/* A communicator, once for all ranks that report it. */
struct known_group {
	struct known_group *next; /* in the order in which they were found */
	const char *name;
	int ranks;
	struct wlb_group_id id;
	int32_t number;
};

struct builder {
	const struct wlbd_attempt_ranks *ranks;
	struct wlbd_world *world;
	int *rank_at; /* [places] */
	void *tree;   /* of groups */
	struct known_group *newest;
	int32_t group_count;
	size_t member_count;
	bool is_out_of_memory;
};

/* ---- nodes and places -------------------------------------------------------------------------------------------- */

/* Numbers the nodes in the order of their lowest ranks, which is the order in which ranks fill them. */
static int number_nodes(struct builder *b)
{
	const struct wlbd_attempt_ranks *given = b->ranks;
	int32_t *number = calloc((size_t)given->nodes + 1, sizeof(*number)), count = 0;
	if (number == NULL)
		return -1;
	for (int rank = 0; rank < given->count; rank++) {
		int32_t *of_node = &number[given->node_of[rank]];
		if (*of_node == 0) {
			b->world->given_node[count] = given->node_of[rank];
			b->world->node_names[count] = given->node_names[given->node_of[rank]];
			*of_node = ++count;
		}
		b->world->node_of[rank] = *of_node - 1;
	}
	b->world->verdict.nodes = count;
	free(number);
	return 0;
}

/* Ranks take their places node by node, as wlb_nodes_place says. The last stage is followed by a set of its own for
 * ranks that the layout leaves idle. */
static int find_places(struct builder *b)
{
	struct wlbd_world *world = b->world;
	const struct wlb_layout *layout = b->ranks->layout;
	int places = wlb_layout_ranks(layout);
	int *next = calloc((size_t)world->verdict.nodes + 1, sizeof(*next)); /* the next place on each node */
	if (next == NULL)
		return -1;
	for (int rank = 0; rank < b->ranks->count; rank++)
		next[world->node_of[rank] + 1]++;
	for (int node = 1; node < world->verdict.nodes; node++)
		next[node] += next[node - 1];
	for (int rank = 0; rank < b->ranks->count; rank++) {
		int place = next[world->node_of[rank]]++;
		bool is_idle = place >= places;
		world->place_of[rank] = is_idle ? -1 : place;
		world->stage_of[rank] = is_idle ? layout->pp : wlb_layout_coordinates(layout, place).pp;
		/* A set of peers has a number below that of ranks. */
		if (world->stage_of[rank] >= b->ranks->count)
			world->stage_of[rank] = 0;
		if (!is_idle)
			b->rank_at[place] = rank;
	}
	free(next);
	return 0;
}

/* ---- communicators ----------------------------------------------------------------------------------------------- */

static int by_name_and_first(const void *a, const void *b)
{
	const struct known_group *x = a, *y = b;
	if (x->id.first != y->id.first)
		return x->id.first < y->id.first ? -1 : 1;
	if (x->ranks != y->ranks)
		return x->ranks < y->ranks ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Returns the number of the group; -1 where there is none of it, or if out of memory. */
static int32_t find_group(struct builder *b, int rank, const struct wlbd_activity_group *group)
{
	struct known_group key = {.name = group->name, .ranks = group->ranks};
	int place = b->world->place_of[rank];
	if (group->ranks < 2 || place < 0 ||
	    wlb_group_find(b->ranks->layout, group->name, group->ranks, place, &key.id) != 0)
		return -1;
	struct known_group **found = tfind(&key, &b->tree, by_name_and_first);
	if (found != NULL)
		return (*found)->number;
	struct known_group *added = malloc(sizeof(*added));
	if (added != NULL)
		*added = key;
	if (added == NULL || tsearch(added, &b->tree, by_name_and_first) == NULL) {
		free(added);
		b->is_out_of_memory = true;
		return -1;
	}
	added->next = b->newest;
	b->newest = added;
	added->number = b->group_count++;
	b->member_count += (size_t)group->ranks;
	return added->number;
}

static int find_groups(struct builder *b)
{
	struct wlbd_world *world = b->world;
	size_t count = 0;
	for (int rank = 0; rank < b->ranks->count; rank++) {
		const struct wlbd_kept_activity *kept = wlbd_activities_of(b->ranks->activities, rank);
		world->first[rank] = count;
		count += kept != NULL ? (size_t)kept->activity.group_count : 0;
	}
	world->first[b->ranks->count] = count;
	world->group_of = calloc(count + 1, sizeof(*world->group_of));
	world->member_of = calloc(count + 1, sizeof(*world->member_of));
	if (world->group_of == NULL || world->member_of == NULL)
		return -1;
	for (int rank = 0; rank < b->ranks->count && !b->is_out_of_memory; rank++) {
		const struct wlbd_kept_activity *kept = wlbd_activities_of(b->ranks->activities, rank);
		for (int i = 0; kept != NULL && i < kept->activity.group_count; i++)
			world->group_of[world->first[rank] + (size_t)i] = find_group(b, rank, &kept->groups[i]);
	}
	return b->is_out_of_memory ? -1 : 0;
}

static enum wlb_verdict_group_kind verdict_kind(enum wlb_group_kind kind)
{
	static const enum wlb_verdict_group_kind kinds[] = {
		[WLB_GROUP_TP] = WLB_VERDICT_TP,       [WLB_GROUP_CP] = WLB_VERDICT_CP,
		[WLB_GROUP_EDGE] = WLB_VERDICT_PP,     [WLB_GROUP_DP] = WLB_VERDICT_DP,
		[WLB_GROUP_WORLD] = WLB_VERDICT_WORLD, [WLB_GROUP_STAGES] = WLB_VERDICT_OTHER};
	return kinds[kind];
}

static void number_member(struct wlbd_world *world, int rank, int32_t group, int32_t member)
{
	for (size_t i = world->first[rank]; i < world->first[rank + 1]; i++)
		if (world->group_of[i] == group)
			world->member_of[i] = member;
}

static int list_members(struct builder *b)
{
	struct wlbd_world *world = b->world;
	size_t used = 0;
	world->groups = calloc((size_t)b->group_count + 1, sizeof(*world->groups));
	world->members = calloc(b->member_count + 1, sizeof(*world->members));
	world->names = calloc((size_t)b->group_count + 1, sizeof(*world->names));
	if (world->groups == NULL || world->members == NULL || world->names == NULL)
		return -1;
	for (const struct known_group *group = b->newest; group != NULL; group = group->next) {
		int32_t *members = world->members + used;
		wlb_group_members(b->ranks->layout, group->name, group->ranks, &group->id, members);
		for (int i = 0; i < group->ranks; i++) {
			members[i] = b->rank_at[members[i]];
			number_member(world, members[i], group->number, i);
		}
		memcpy(world->names[group->number], group->name, sizeof(*world->names));
		world->groups[group->number] =
			(struct wlb_verdict_group){.kind = verdict_kind(group->id.kind),
		                                   .name = world->names[group->number],
		                                   .members = members,
		                                   .count = group->ranks,
		                                   .has_one_transfer = group->id.kind != WLB_GROUP_EDGE,
		                                   .alike = 1 + group->number};
		used += (size_t)group->ranks;
	}
	return 0;
}

static void free_groups(struct builder *b)
{
	while (b->newest != NULL) {
		struct known_group *group = b->newest;
		b->newest = group->next;
		tdelete(group, &b->tree, by_name_and_first);
		free(group);
	}
}

/* ---- the world --------------------------------------------------------------------------------------------------- */

static int allocate(struct builder *b)
{
	struct wlbd_world *world = b->world;
	size_t ranks = (size_t)b->ranks->count, places = (size_t)wlb_layout_ranks(b->ranks->layout);
	world->node_of = calloc(ranks + 1, sizeof(*world->node_of));
	world->given_node = calloc(ranks + 1, sizeof(*world->given_node));
	world->node_names = calloc(ranks + 1, sizeof(*world->node_names));
	world->stage_of = calloc(ranks + 1, sizeof(*world->stage_of));
	world->place_of = calloc(ranks + 1, sizeof(*world->place_of));
	world->first = calloc(ranks + 1, sizeof(*world->first));
	b->rank_at = calloc(places + 1, sizeof(*b->rank_at));
	return world->node_of == NULL || world->given_node == NULL || world->node_names == NULL ||
	                       world->stage_of == NULL || world->place_of == NULL || world->first == NULL ||
	                       b->rank_at == NULL
	               ? -1
	               : 0;
}

static size_t count_bytes(const struct builder *b)
{
	const struct wlbd_world *world = b->world;
	size_t ranks = (size_t)b->ranks->count;
	return ranks * (4 * sizeof(int32_t) + sizeof(*world->first) + sizeof(*world->node_names)) +
	       world->first[ranks] * (sizeof(*world->group_of) + sizeof(*world->member_of)) +
	       b->member_count * sizeof(*world->members) +
	       (size_t)b->group_count * (sizeof(*world->groups) + sizeof(*world->names));
}

int wlbd_world_make(const struct wlbd_attempt_ranks *ranks, struct wlbd_world *world)
{
	struct builder b = {.ranks = ranks, .world = world};
	*world = (struct wlbd_world){0};
	int rc = wlb_layout_ranks(ranks->layout) > ranks->count ? -1 : 0;
	if (rc == 0 && (allocate(&b) != 0 || number_nodes(&b) != 0 || find_places(&b) != 0 || find_groups(&b) != 0 ||
	                list_members(&b) != 0))
		rc = -1;
	if (rc == 0) {
		world->bytes = count_bytes(&b);
		world->verdict.ranks = ranks->count;
		world->verdict.node_of = world->node_of;
		world->verdict.node_names = world->node_names;
		world->verdict.peers_of = world->stage_of;
		world->verdict.groups = world->groups;
		world->verdict.group_count = b.group_count;
	} else {
		wlbd_world_free(world);
	}
	free_groups(&b);
	free(b.rank_at);
	return rc;
}

void wlbd_world_free(struct wlbd_world *world)
{
	free(world->node_of);
	free(world->given_node);
	free(world->node_names);
	free(world->stage_of);
	free(world->place_of);
	free(world->groups);
	free(world->names);
	free(world->members);
	free(world->first);
	free(world->group_of);
	free(world->member_of);
	*world = (struct wlbd_world){0};
}

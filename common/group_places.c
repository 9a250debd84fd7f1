#include "common/group_places.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* How many members differ in each coordinate; a member's coordinate is the first member's plus 0 to extent - 1. The
 * stages of `tied` of two ranks are an exception: they are the first and the last. */
struct extents {
	enum wlb_group_kind kind;
	int tp, cp, pp, dp;
};

static size_t kind_length(const char *name)
{
	size_t length = 0;
	while (isalpha((unsigned char)name[length]) || name[length] == '_')
		length++;
	return length;
}

static bool is_kind(const char *name, const char *kind)
{
	return kind_length(name) == strlen(kind) && strncmp(name, kind, strlen(kind)) == 0;
}

/* Reads the stages of an edge, "pp 0>1". */
static bool read_edge(const struct wlb_layout *layout, const char *name, int ranks, int *sender, int *receiver)
{
	char end;
	if (!is_kind(name, "pp") && !is_kind(name, "pp_back") && !is_kind(name, "head"))
		return false;
	return sscanf(name + kind_length(name), " %d>%d%c", sender, receiver, &end) == 2 && ranks == 2 &&
	       *sender >= 0 && *sender < layout->pp && *receiver >= 0 && *receiver < layout->pp && *sender != *receiver;
}

/* Returns false where the name is not of a group that differs in whole coordinates, or has another number of ranks. */
static bool find_extents(const struct wlb_layout *l, const char *name, int ranks, struct extents *extents)
{
	const struct {
		const char *kind;
		struct extents extents;
	} kinds[] = {
		{"tp", {WLB_GROUP_TP, l->tp, 1, 1, 1}},       {"kv", {WLB_GROUP_TP, ranks, 1, 1, 1}},
		{"cp", {WLB_GROUP_CP, 1, l->cp, 1, 1}},       {"dp", {WLB_GROUP_DP, 1, 1, 1, l->dp}},
		{"dp", {WLB_GROUP_DP, 1, l->cp, 1, l->dp}}, /* gradients are reduced over context parallelism too */
		{"data", {WLB_GROUP_DP, 1, l->cp, 1, l->dp}}, {"tied", {WLB_GROUP_STAGES, 1, 1, l->pp, 1}},
		{"tied", {WLB_GROUP_STAGES, 1, 1, 2, 1}},
	};
	int all = wlb_layout_ranks(l);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		*extents = kinds[i].extents;
		if (is_kind(name, kinds[i].kind) && extents->tp * extents->cp * extents->pp * extents->dp == ranks)
			return ranks >= 1 && l->tp % extents->tp == 0 && extents->pp <= l->pp;
	}
	*extents = (struct extents){WLB_GROUP_WORLD, l->tp, l->cp, l->pp, l->dp};
	return ranks == all;
}

static int find_edge(const struct wlb_layout *layout, int sender, int receiver, int place, struct wlb_group_id *id)
{
	struct wlb_coordinates coords = wlb_layout_coordinates(layout, place);
	if (coords.pp != sender && coords.pp != receiver)
		return -1;
	coords.pp = sender < receiver ? sender : receiver;
	*id = (struct wlb_group_id){WLB_GROUP_EDGE, wlb_layout_place(layout, &coords)};
	return 0;
}

int wlb_group_find(const struct wlb_layout *layout, const char *name, int ranks, int place, struct wlb_group_id *id)
{
	struct extents extents;
	int sender, receiver;
	if (read_edge(layout, name, ranks, &sender, &receiver))
		return find_edge(layout, sender, receiver, place, id);
	if (!find_extents(layout, name, ranks, &extents))
		return -1;
	struct wlb_coordinates coords = wlb_layout_coordinates(layout, place);
	if (extents.kind == WLB_GROUP_STAGES && ranks < layout->pp && coords.pp != 0 && coords.pp != layout->pp - 1)
		return -1;
	coords.tp -= coords.tp % extents.tp;
	coords.cp = extents.cp > 1 ? 0 : coords.cp;
	coords.pp = extents.pp > 1 ? 0 : coords.pp;
	coords.dp = extents.dp > 1 ? 0 : coords.dp;
	*id = (struct wlb_group_id){extents.kind, wlb_layout_place(layout, &coords)};
	return 0;
}

void wlb_group_members(const struct wlb_layout *layout, const char *name, int ranks, const struct wlb_group_id *id,
                       int *places)
{
	struct extents e;
	struct wlb_coordinates first = wlb_layout_coordinates(layout, id->first), coords = first;
	int stages[2];
	if (read_edge(layout, name, ranks, &stages[0], &stages[1])) {
		for (int i = 0; i < 2; i++) {
			coords.pp = stages[i];
			places[i] = wlb_layout_place(layout, &coords);
		}
		return;
	}
	find_extents(layout, name, ranks, &e);
	bool ends = e.kind == WLB_GROUP_STAGES && ranks < layout->pp;
	for (int i = 0; i < ranks; i++) {
		int pp = i / e.tp / e.cp % e.pp;
		coords.tp = first.tp + i % e.tp;
		coords.cp = first.cp + i / e.tp % e.cp;
		coords.pp = ends && pp == 1 ? layout->pp - 1 : first.pp + pp;
		coords.dp = first.dp + i / e.tp / e.cp / e.pp;
		places[i] = wlb_layout_place(layout, &coords);
	}
}

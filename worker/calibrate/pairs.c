#include "worker/calibrate/pairs.h"

#include <stddef.h>

const char *wlb_link_name(enum wlb_link_kind kind)
{
	static const char *const names[] = {
		[WLB_LINK_NODE] = "node_link", [WLB_LINK_NETWORK] = "network_link", [WLB_LINK_SWITCH] = "switch_link"};
	return names[kind];
}

static int leaf_of(const struct wlb_rank_map *map, int node)
{
	return map->leaf_of != NULL ? map->leaf_of[node] : 0;
}

/* Returns the number of `rank` among the ranks of its node. */
static int place_on_node(const struct wlb_rank_map *map, int rank)
{
	int place = 0;
	for (int r = 0; r < rank; r++)
		place += map->node_of[r] == map->node_of[rank];
	return place;
}

/* Returns the rank at a place of a node; -1 where the node has fewer ranks. */
static int rank_at(const struct wlb_rank_map *map, int node, int place)
{
	for (int r = 0; r < map->ranks; r++)
		if (map->node_of[r] == node && place-- == 0)
			return r;
	return -1;
}

/* Returns the number of a node among those of its leaf switch. */
static int place_on_leaf(const struct wlb_rank_map *map, int node)
{
	int place = 0;
	for (int n = 0; n < node; n++)
		place += leaf_of(map, n) == leaf_of(map, node);
	return place;
}

/* Returns the node at a place of a leaf switch; -1 where the switch has fewer nodes. */
static int node_at(const struct wlb_rank_map *map, int leaf, int place)
{
	for (int n = 0; n < map->nodes; n++)
		if (leaf_of(map, n) == leaf && place-- == 0)
			return n;
	return -1;
}

/* Returns 1 for the first node of a leaf switch. */
static int begins_leaf(const struct wlb_rank_map *map, int node)
{
	return place_on_leaf(map, node) == 0;
}

/* Returns the leaf switch that is paired with that of `node`, in the order of their first nodes; -1 where there is
 * none. */
static int neighbour_leaf(const struct wlb_rank_map *map, int node)
{
	int number = 0, wanted;
	for (int n = 0; n < map->nodes && leaf_of(map, n) != leaf_of(map, node); n++)
		number += begins_leaf(map, n);
	wanted = number ^ 1;
	for (int n = 0; n < map->nodes; n++)
		if (begins_leaf(map, n) && wanted-- == 0)
			return leaf_of(map, n);
	return -1;
}

int wlb_pair_partner(const struct wlb_rank_map *map, enum wlb_link_kind kind, int rank)
{
	int node = map->node_of[rank], place = place_on_node(map, rank), at = place_on_leaf(map, node);
	if (kind == WLB_LINK_NODE)
		return rank_at(map, node, place ^ 1);
	int leaf = kind == WLB_LINK_NETWORK ? leaf_of(map, node) : neighbour_leaf(map, node);
	int other = leaf < 0 ? -1 : node_at(map, leaf, kind == WLB_LINK_NETWORK ? at ^ 1 : at);
	return other < 0 ? -1 : rank_at(map, other, place);
}

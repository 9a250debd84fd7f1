/* Counts the ranks of nodes, and finds the place of a rank in the layout. */
#include "libwlb/wlb.h"

int wlb_nodes_ranks_on(const struct wlb_nodes *nodes, int node)
{
	return nodes->ranks_on != NULL ? nodes->ranks_on[node] : nodes->ranks_per_node;
}

int64_t wlb_nodes_ranks(const struct wlb_nodes *nodes)
{
	if (nodes->ranks_on == NULL)
		return (int64_t)nodes->count * nodes->ranks_per_node;
	int64_t ranks = 0;
	for (int node = 0; node < nodes->count; node++)
		ranks += nodes->ranks_on[node];
	return ranks;
}

int64_t wlb_nodes_place(const struct wlb_nodes *nodes, int node, int local_rank)
{
	if (node < 0 || node >= nodes->count || local_rank < 0 || local_rank >= wlb_nodes_ranks_on(nodes, node))
		return -1;
	int64_t before = 0;
	for (int i = 0; i < nodes->count; i++) {
		int current = nodes->order != NULL ? nodes->order[i] : i;
		if (current == node)
			return before + local_rank;
		before += wlb_nodes_ranks_on(nodes, current);
	}
	return -1;
}

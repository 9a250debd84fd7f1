/* Chooses which two ranks measure a link together. Pure functions of the nodes of the ranks. */
#ifndef WORKER_CALIBRATE_PAIRS_H
#define WORKER_CALIBRATE_PAIRS_H

enum wlb_link_kind {
	WLB_LINK_NODE,    /* inside a node */
	WLB_LINK_NETWORK, /* between nodes of one leaf switch */
	WLB_LINK_SWITCH,  /* between leaf switches */
	WLB_LINK_KINDS,
};

const char *
wlb_link_name(enum wlb_link_kind kind); /* "node_link", "network_link", "switch_link": fields of a machine */

struct wlb_rank_map {
	int ranks;
	const int *node_of; /* [ranks] */
	int nodes;
	const int *leaf_of; /* [nodes] numbers of leaf switches, 0 or more; NULL: all nodes have the same */
};

/* Returns the rank with which `rank` measures links of that kind, or -1 where it has none: the neighbour on its node;
 * the rank with the same number on the neighbouring node of its switch; that on the node at the same place of the
 * neighbouring switch. Neighbours are first and second, third and fourth ... in order, so that all pairs measure at the
 * same time, as all ranks communicate at the same time in training. */
int wlb_pair_partner(const struct wlb_rank_map *map, enum wlb_link_kind kind, int rank);

#endif

/* The order of some nodes in Slurm's topology: those of a switch are neighbours; no I/O. */
#ifndef COORDINATOR_SLURM_TOPOLOGY_ORDER_H
#define COORDINATOR_SLURM_TOPOLOGY_ORDER_H

#include "coordinator/slurm/topology_text.h"
#include "libwlb/wlb.h"

/* order[i], of `count`, is the index into `names` of the node at place i, and leaf[i] the name of its switch: the nodes
 * of a leaf switch, then those of the switch above it, are consecutive (wlb_topology_order). Nodes that the topology
 * does not have come last, in their order, with NULL; so do all nodes of an empty topology. The names of switches are
 * valid as long as the topology. Returns -1 with the reason where the switches form a cycle, or out of memory. */
int wlb_topology_order_names(const struct wlb_topology_file *topology, const char *const *names, int count, int *order,
                             const char **leaf, struct wlb_error *error);

#endif

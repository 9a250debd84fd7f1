/* The node on which a node's copies are kept, so that they are not lost with it. */
#ifndef WORKER_TRAIN_NEAR_NEIGHBOUR_H
#define WORKER_TRAIN_NEAR_NEIGHBOUR_H

#include <stdint.h>

#include "libwlb/wlb.h"

/* Sets neighbours[count] to the node that keeps the copies of each node: each node keeps those of one node, of itself
 * only where it is alone. switch_of[count] has the number of the switch that each node is under, equal for nodes under
 * one. Where no switch has more than half of the nodes, no neighbour is under the node's own switch. Returns -1 where
 * memory is short. */
int wlb_near_neighbours(int count, const uint64_t *switch_of, int *neighbours, struct wlb_error *error);

/* Returns a number of the switches or blocks, without the node, in a path of SLURM_TOPOLOGY_ADDR such as
 * "spine.leaf2.node5", whose kinds SLURM_TOPOLOGY_ADDR_PATTERN says, as "switch.switch.node"; 0 where either is NULL or
 * has only the node. It is below 2^53. */
uint64_t wlb_near_switch(const char *address, const char *pattern);

#endif

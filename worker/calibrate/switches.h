/* Finds the leaf switch of each node of the job. */
#ifndef WORKER_CALIBRATE_SWITCHES_H
#define WORKER_CALIBRATE_SWITCHES_H

#include "worker/comm/comm.h"
#include "worker/launch/launch.h"

/* Collective over `world`: leaf_of[node_count] = a number of the leaf switch of each node, from SLURM_TOPOLOGY_ADDR,
 * which Slurm sets on each node; 0 on nodes where it names no switch. Returns how many leaf switches there are, or -1
 * where the collective failed or out of memory. */
int wlb_find_switches(const struct wlb_launch *launch, struct wlb_comm *world, int *leaf_of, struct wlb_error *error);

/* Finds the name of the leaf switch in an address such as "spine.leaf2.n7" with the pattern "switch.switch.node". Sets
 * *length and returns where the name begins; NULL where the address has none. */
const char *wlb_leaf_in_address(const char *address, const char *pattern, int *length);

#endif

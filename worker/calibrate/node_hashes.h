/* Hashes names of each node, so that ranks can compare them after an all-reduce of doubles. */
#ifndef WORKER_CALIBRATE_NODE_HASHES_H
#define WORKER_CALIBRATE_NODE_HASHES_H

#include "worker/comm/comm.h"
#include "worker/launch/launch.h"

/* Returns a hash of the first `length` bytes of a name, a whole number from 1 to 2^48. Two different names have the
 * same hash with a probability of about 1 in 2^48. */
double wlb_name_hash(const char *name, int length);

/* Collective over `world`: returns the hash of each node in launch->nodes, which the caller frees; `own` is that of
 * this rank's node, 0 where it has no name. Returns NULL where the collective failed or out of memory. */
double *wlb_share_node_hashes(const struct wlb_launch *launch, struct wlb_comm *world, double own,
                              struct wlb_error *error);

#endif

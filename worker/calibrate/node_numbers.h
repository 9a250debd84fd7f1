/* Names of each node that the ranks compare, as numbers that an all-reduce can carry. */
#ifndef WORKER_CALIBRATE_NODE_NUMBERS_H
#define WORKER_CALIBRATE_NODE_NUMBERS_H

#include "worker/comm/comm.h"
#include "worker/launch/launch.h"

/* A number for the first `length` bytes of a name, 1 to 2^48; different names have different numbers, but for one in
 * 2^48. */
double wlb_name_number(const char *name, int length);

/* Collective over `world`: returns the number of each node in launch->nodes; `own` is that of this rank's node. The
 * caller frees the array. NULL where the collective failed or out of memory. */
double *wlb_share_numbers(const struct wlb_launch *launch, struct wlb_comm *world, double own, struct wlb_error *error);

#endif

/* The memory that a rank of the job has for training. */
#ifndef WORKER_CALIBRATE_RANK_MEMORY_H
#define WORKER_CALIBRATE_RANK_MEMORY_H

#include "worker/comm/comm.h"
#include "worker/launch/launch.h"

/* Collective over `world`: sets *bytes to the least that a rank has: its share of a GPU, which ranks of its node may
 * have too, or, on a device with the host's memory, of the node. Returns -1 where the collective failed or out of
 * memory. */
int wlb_rank_memory(const struct wlb_launch *launch, const struct wlb_device *device, struct wlb_comm *world,
                    double *bytes, struct wlb_error *error);

#endif

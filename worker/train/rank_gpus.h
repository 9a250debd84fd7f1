/* The GPU of each rank, for the record of the attempt. */
#ifndef WORKER_TRAIN_RANK_GPUS_H
#define WORKER_TRAIN_RANK_GPUS_H

#include "worker/comm/comm.h"
#include "worker/launch/launch.h"
#include "worker/record/record.h"

/* Collective over `world`, of all ranks. Returns how many ranks compute on this rank's GPU, 0 on the CPU; rank 0
 * records the GPUs of all ranks (docs/api.md, records of type gpus). Returns -1 where the ranks cannot exchange them.
 */
int wlb_record_rank_gpus(const struct wlb_launch *launch, const struct wlb_device *device, struct wlb_comm *world,
                         struct wlb_recorder *recorder, struct wlb_error *error);

#endif

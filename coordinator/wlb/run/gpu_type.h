/* The type of the GPUs that an attempt's nodes have. */
#ifndef COORDINATOR_WLB_RUN_GPU_TYPE_H
#define COORDINATOR_WLB_RUN_GPU_TYPE_H

#include <stddef.h>

#include "coordinator/wlb/run/state.h"

/* The type in Slurm's GRES of the first of the nodes that has typed GPUs, into `type`; NULL where none has, or Slurm
 * does not answer. */
const char *wlb_run_gpu_type(const struct wlb_attempt *attempt, char *type, size_t size);

#endif

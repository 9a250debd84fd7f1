/* The types of the GPUs that an attempt's nodes have. */
#ifndef COORDINATOR_WLB_RUN_PLAN_GPU_TYPES_H
#define COORDINATOR_WLB_RUN_PLAN_GPU_TYPES_H

#include <stdbool.h>
#include <stddef.h>

#include "coordinator/wlb/run/state/state.h"

enum { WLB_RUN_GPU_TYPES_BYTES = 4096 };

/* Writes the types in Slurm's GRES of the attempt's nodes, each once, as "h100,a100" into `types`: the types of the
 * coordinator's reply, else of slurmctld's. "" where the job has no GPUs, no node has a type, or Slurm does not answer.
 */
void wlb_run_gpu_types(const struct wlb_run *run, const struct wlb_attempt *attempt,
                       char types[WLB_RUN_GPU_TYPES_BYTES]);

/* Whether slurmctld says that `node`, which the attempt excludes, has GPUs of another type than the attempt's nodes,
 * whose machine file therefore says nothing of its speed. Types that are not known do not differ. */
bool wlb_run_has_other_gpus(const struct wlb_run *run, const struct wlb_attempt *attempt, const char *node);

#endif

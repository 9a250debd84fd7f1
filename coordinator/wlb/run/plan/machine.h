/* The machine that a run on these nodes is planned with. */
#ifndef COORDINATOR_WLB_RUN_PLAN_MACHINE_H
#define COORDINATOR_WLB_RUN_PLAN_MACHINE_H

#include "coordinator/wlb/run/plan/gpu_types.h"
#include "coordinator/wlb/run/state/state.h"

/* Unless the user has set WLB_MACHINE: asks the coordinator for what was measured of nodes like this one, or of nodes
 * with GPUs of the type in `types`, writes it to the spool folder and names that file by WLB_MACHINE, for the planner
 * and for the ranks, and sets run->calibration. Of nodes of several processors that is the slowest. Of several types
 * each that was measured is replaced by its file, and WLB_MACHINE is unset. Only the first attempt of a run asks. Later
 * attempts take its files, so that all attempts are planned alike; the types of an attempt say which file. Without a
 * coordinator, or where nothing was measured, WLB_MACHINE is unset. */
void wlb_run_find_machine(struct wlb_run *run, const struct wlb_attempt *attempt, char types[WLB_RUN_GPU_TYPES_BYTES]);

#endif

/* The machine that a run on these nodes is planned with. */
#ifndef COORDINATOR_WLB_RUN_PLAN_MACHINE_H
#define COORDINATOR_WLB_RUN_PLAN_MACHINE_H

#include "coordinator/wlb/run/plan/gpu_types.h"
#include "coordinator/wlb/run/state/state.h"

/* Unless the user has set WLB_MACHINE: asks the coordinator for what was measured of nodes like this one, or of nodes
 * with GPUs of the type in `types`, writes it to the spool folder and names that file by WLB_MACHINE, for the planner
 * and for the ranks, and sets run->calibration. Of nodes with several processors the slowest counts. Of several types
 * in `types`, each that was measured is replaced by its file, and WLB_MACHINE is unset. Only the first attempt of a run
 * asks. Later attempts read the files of the first, by their own types, so that all attempts are planned alike. Without
 * a coordinator, or where nothing was measured, WLB_MACHINE is unset. */
void wlb_run_find_machine(struct wlb_run *run, const struct wlb_attempt *attempt, char types[WLB_RUN_GPU_TYPES_BYTES]);

#endif

/* The machine that a run on these nodes is planned with. */
#ifndef COORDINATOR_WLB_RUN_MACHINE_H
#define COORDINATOR_WLB_RUN_MACHINE_H

#include "coordinator/wlb/run/state.h"

/* Unless WLB_MACHINE is set: asks the coordinator for what was measured of nodes like this one, writes it to the spool
 * folder and names that file by WLB_MACHINE, for the planner and for the ranks, and sets run->calibration. A run that
 * has such a file already keeps it, so that all of its attempts are alike. Without a coordinator, or where nothing was
 * measured, WLB_MACHINE stays unset. */
void wlb_run_find_machine(struct wlb_run *run);

#endif

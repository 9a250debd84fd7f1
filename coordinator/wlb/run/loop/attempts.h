/* From attempt to attempt, until the command has succeeded or nothing more can be done. */
#ifndef COORDINATOR_WLB_RUN_LOOP_ATTEMPTS_H
#define COORDINATOR_WLB_RUN_LOOP_ATTEMPTS_H

#include "coordinator/wlb/run/state/state.h"

/* Does what next_rule.h decides until the run is over here: finished, requeued with its job, or abandoned. Returns the
 * exit code of `wlb run`. */
int wlb_run_attempts(struct wlb_run *run);

#endif

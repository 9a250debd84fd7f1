/* Waits for the end of an attempt's srun, and carries out orders and signals meanwhile. */
#ifndef COORDINATOR_WLB_RUN_ATTEMPT_WATCH_H
#define COORDINATOR_WLB_RUN_ATTEMPT_WATCH_H

#include <sys/types.h>

#include "coordinator/client/reporter.h"
#include "coordinator/wlb/run/state/state.h"

/* Returns when srun has ended; carries out orders and signals, and passes srun's stderr on; closes it. Fills in
 * how the attempt ended. */
void wlb_run_watch(struct wlb_run *run, struct wlb_attempt *attempt, pid_t srun, int srun_stderr,
                   struct wlb_reporter *reporter);

#endif

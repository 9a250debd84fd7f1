/* Waits for the end of an attempt's srun, and carries out orders and signals meanwhile. */
#ifndef COORDINATOR_WLB_RUN_ATTEMPT_WATCH_H
#define COORDINATOR_WLB_RUN_ATTEMPT_WATCH_H

#include <sys/types.h>

#include "coordinator/client/reporter.h"
#include "coordinator/wlb/run/state/state.h"

/* Returns when srun has ended; carries out orders and signals, and passes srun's stderr on; closes it. Fills in
 * how the attempt went, and run->first_exit. */
void wlb_run_watch(struct wlb_run *run, struct wlb_attempt *attempt, pid_t srun, int srun_stderr,
                   struct wlb_reporter *reporter);
/* Ends the step of an srun that was killed, and waits, 15 s at most, until Slurm reports that it is gone: otherwise its
 * ranks would run on beside those of the next attempt. The kill is reported to the coordinator first, so that it does
 * not take the ranks that end here for the cause. */
void wlb_run_end_orphaned_step(struct wlb_run *run);

#endif

/* One attempt is started with srun. */
#ifndef COORDINATOR_WLB_RUN_LAUNCH_H
#define COORDINATOR_WLB_RUN_LAUNCH_H

#include <sys/types.h>

#include "coordinator/wlb/run/state.h"
#include "libwlb/wlb.h"

/* Starts srun; its pid, or -1. *srun_stderr is the end to read from, and the caller closes it. */
pid_t wlb_run_launch(const struct wlb_run *run, const struct wlb_attempt *attempt, int *srun_stderr,
                     struct wlb_error *error);

#endif

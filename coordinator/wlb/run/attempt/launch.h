/* Starts one attempt with srun. */
#ifndef COORDINATOR_WLB_RUN_ATTEMPT_LAUNCH_H
#define COORDINATOR_WLB_RUN_ATTEMPT_LAUNCH_H

#include <sys/types.h>

#include "coordinator/wlb/run/state/state.h"
#include "libwlb/wlb.h"

/* Starts srun; returns its pid, or -1. *srun_stderr is the reading end of its stderr, which the caller closes. */
pid_t wlb_run_launch(struct wlb_run *run, const struct wlb_attempt *attempt, int *srun_stderr, struct wlb_error *error);

#endif

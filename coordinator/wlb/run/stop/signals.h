/* Signals that end the run or are passed on to srun, and pauses that they end. */
#ifndef COORDINATOR_WLB_RUN_STOP_SIGNALS_H
#define COORDINATOR_WLB_RUN_STOP_SIGNALS_H

#include <stdbool.h>

#include "coordinator/wlb/run/state/state.h"
#include "libwlb/wlb.h"

/* Routes the signals to run->signal_fd. Call it before the first thread is started, so that every thread has them
 * blocked. Returns -1 if they cannot be read. */
int wlb_run_signals_block(struct wlb_run *run, struct wlb_error *error);

/* Reads one signal from run->signal_fd; *number is 0 if there is none, or SIGTERM came because the job is preempted and
 * its grace time runs. Returns true for the signals that end the run:
 * run->cancelled or run->abandoned is then set. */
bool wlb_run_signal_read(struct wlb_run *run, int *number);

/* Sleeps. Returns false at once if the run has to end: run->cancelled or run->abandoned is then set. */
bool wlb_run_pause(struct wlb_run *run, int ms);

#endif

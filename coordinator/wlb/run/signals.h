/* Signals that end the run or are passed on to srun, and pauses that they end. */
#ifndef COORDINATOR_WLB_RUN_SIGNALS_H
#define COORDINATOR_WLB_RUN_SIGNALS_H

#include <stdbool.h>

#include "coordinator/wlb/run/state.h"
#include "libwlb/wlb.h"

/* Has the signals come over run->signal_fd. To be called before the first thread is started, so that every thread
 * leaves them to it. -1 when they cannot be read. */
int wlb_run_signals_block(struct wlb_run *run, struct wlb_error *error);

/* Reads one signal from run->signal_fd, its *number 0 when there is none. True for the signals that end the run:
 * run->cancelled or run->abandoned is then set. */
bool wlb_run_signal_read(struct wlb_run *run, int *number);

/* Sleeps; false at once when the run is to end (run->cancelled or run->abandoned is then set). */
bool wlb_run_pause(struct wlb_run *run, int ms);

#endif

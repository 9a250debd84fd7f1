/*
 * How long the steps and checkpoints of wlb-worker take, and which was the last checkpoint: read from the spool of rank
 * 0 (client/spool.h) while it grows. Another trainer has no such spool: then nothing is known.
 */
#ifndef COORDINATOR_WLB_RUN_STATE_PROGRESS_H
#define COORDINATOR_WLB_RUN_STATE_PROGRESS_H

#include "coordinator/wlb/run/state/state.h"

/* Seconds; 0: none is known. */
double wlb_run_longest_s(const struct wlb_run_longest *longest);

/* To be called once an attempt has ended. What was longest is kept. */
void wlb_run_progress_reset(struct wlb_run_progress *progress);

/* Reads what rank 0 has recorded since the last call, 4 MiB at most. Opens the spool once it exists. The spool may be
 * removed meanwhile, which does not matter once it is open. now_ms: wlb_clock_ms(); a time of more than 15 s since the
 * last call, as of a job that was suspended, is subtracted from the step and the save that it was in. */
void wlb_run_progress_read(struct wlb_run_progress *progress, const char *spool_dir, const char *attempt_id,
                           int64_t now_ms);

#endif

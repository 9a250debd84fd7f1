/*
 * The signals by which a run is asked to save a checkpoint: SIGUSR2, which `wlb save` sends, and to stop after it:
 * SIGUSR1, which `wlb run` sends before the end of the job, and Slurm itself with --signal=USR1@SECONDS. A thread waits
 * for them; they are blocked in all others, so that they interrupt no call.
 *
 * SIGTERM ends the process at once, except where `wlb run` has set WLB_TERM_HOLD_S, since Slurm may preempt jobs there:
 * Slurm begins a job's grace time with SIGTERM, as it does when it ends a step, and only `wlb run` can ask Slurm which
 * of them it was. The process then ends that many seconds later, or at the next SIGTERM, unless SIGUSR1 arrives before.
 */
#ifndef WORKER_TRAIN_STOP_SIGNALS_H
#define WORKER_TRAIN_STOP_SIGNALS_H

#include "libwlb/wlb.h"

/* Must be called before any other thread is started, since threads inherit what is blocked. */
int wlb_stop_signals_open(struct wlb_error *error);

/* Returns 1 once this process was asked to save and stop. */
int wlb_stop_is_asked(void);

/* Returns 1 once after this process was asked to save. */
int wlb_save_is_asked(void);

/* From now on SIGTERM has no effect: the process is about to end with its own exit code. */
void wlb_stop_signals_ignore_term(void);

#endif

/*
 * Asks the command to save and stop before the job ends (SIGUSR1), and has Slurm queue the job again once it has: the
 * run then continues from that checkpoint.
 */
#ifndef COORDINATOR_WLB_RUN_STOP_H
#define COORDINATOR_WLB_RUN_STOP_H

#include <sys/types.h>

#include "coordinator/client/reporter.h"
#include "coordinator/wlb/run/state.h"
#include "libwlb/wlb.h"

/* Asks the tasks of the attempt, whose srun is that process, where the job's end is near; wlb-worker is asked again
 * every 10 s, since a signal that comes before a task was started is lost. To be called again and again. */
void wlb_run_stop_ask(struct wlb_run *run, struct wlb_attempt *attempt, struct wlb_reporter *reporter, pid_t srun);

/* Finds out how the attempt, whose srun has ended, took the request: sets attempt->stopped, and then the reason. */
void wlb_run_stop_note(struct wlb_run *run, struct wlb_attempt *attempt);

/* Whether there is no time for a next attempt after this one, which has not succeeded. */
bool wlb_run_stop_is_last(struct wlb_run *run, const struct wlb_attempt *attempt);

/* Has Slurm queue the job again, with all records delivered before. Returns -1 where Slurm does not: the message has
 * the remedy. On 0 this process must end: Slurm is ending the job's processes. */
int wlb_run_stop_requeue(struct wlb_run *run, const struct wlb_attempt *attempt, struct wlb_error *error);

#endif

/*
 * Asks the command to save and stop (SIGUSR1, or stop_file.h) before the job ends, so that the run can take in nodes
 * again, or since its user wants it, and has Slurm requeue the job once it has: the run then continues from that
 * checkpoint.
 */
#ifndef COORDINATOR_WLB_RUN_STOP_SAVE_AND_REQUEUE_H
#define COORDINATOR_WLB_RUN_STOP_SAVE_AND_REQUEUE_H

#include <sys/types.h>

#include "coordinator/client/reporter.h"
#include "coordinator/wlb/run/state/state.h"
#include "libwlb/wlb.h"

/* Whether wlb-worker, started again, continues from the checkpoints that it has saved. Of another trainer only its user
 * knows, who has said that the trainer saves when it is asked. */
bool wlb_run_continues_from_save(const struct wlb_run *run);

/* Prints at the start of the run why it would not go on after the job's time limit, where Slurm would requeue the job.
 */
void wlb_run_print_why_not_requeued(const struct wlb_run *run);

/* Asks the tasks of the attempt, whose srun is that process, where the job's end is near or the run can grow;
 * wlb-worker is asked again every 10 s, since a signal that comes before a task was started is lost. To be called again
 * and again. */
void wlb_run_ask_to_save(struct wlb_run *run, struct wlb_attempt *attempt, struct wlb_reporter *reporter, pid_t srun);

/* SIGUSR1 has come to `wlb run`. Returns whether the attempt was asked by its file; if not, the signal is for its
 * tasks.
 */
bool wlb_run_ask_for_user(struct wlb_run *run, struct wlb_attempt *attempt, struct wlb_reporter *reporter);

/* Finds out how the attempt, whose srun has ended, took the request: sets attempt->stopped, and then the reason. */
void wlb_run_note_stop(struct wlb_run *run, struct wlb_attempt *attempt);

/* Has Slurm requeue the job, with all records delivered before. Returns -1 where Slurm does not: the message has
 * the remedy. On 0 this process must end: Slurm is ending the job's processes. */
int wlb_run_requeue(struct wlb_run *run, const struct wlb_attempt *attempt, struct wlb_error *error);

#endif

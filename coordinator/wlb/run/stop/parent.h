/* Checks whether the job's script, which started this process, still runs. If the script was killed, Slurm ends the
 * job, but not always this process: Slurm may not find a process whose parent is gone. A script may also end on purpose
 * and leave this process running; only Slurm can distinguish the two. */
#ifndef COORDINATOR_WLB_RUN_STOP_PARENT_H
#define COORDINATOR_WLB_RUN_STOP_PARENT_H

#include <stdbool.h>

#include "coordinator/wlb/run/state/state.h"

void wlb_run_parent_open(struct wlb_run *run);
void wlb_run_parent_close(struct wlb_run *run);
/* Whether the run has to end because the script is gone and the job is no longer running; sets cancelled or abandoned.
 * Asks Slurm at intervals, or immediately with `at_once`. */
bool wlb_run_check_parent(struct wlb_run *run, bool at_once);
/* Sets cancelled if the job was ended by an order or a limit: Slurm does not signal the command of salloc then. The
 * same if the job was requeued: Slurm does not signal a process whose slurmstepd was killed before, and has ended
 * the tasks of the attempt, of which none is the cause. */
void wlb_run_note_job_end(struct wlb_run *run, struct wlb_attempt *attempt);
/* Handles SIGTERM: sets cancelled, or abandoned if Slurm ends the job because its script was killed. */
void wlb_run_note_sigterm(struct wlb_run *run);

#endif

/* The job's script, which started us. When it was killed Slurm ends the job, but not always us: a process whose parent
 * is gone belongs to nobody that Slurm knows. A script may also end on purpose and leave us to work; only Slurm can
 * tell the two apart. */
#ifndef COORDINATOR_WLB_RUN_PARENT_H
#define COORDINATOR_WLB_RUN_PARENT_H

#include <stdbool.h>

#include "coordinator/wlb/run/state.h"

void wlb_run_parent_open(struct wlb_run *run);
void wlb_run_parent_close(struct wlb_run *run);
/* Whether the run is to end, since the script is gone and the job is no longer running: cancelled or abandoned. Slurm
 * is asked in intervals, or `at_once`. */
bool wlb_run_look_at_parent(struct wlb_run *run, bool at_once);
/* SIGTERM came: sets cancelled, or abandoned where Slurm ends a job whose script was killed. */
void wlb_run_note_term(struct wlb_run *run);

#endif

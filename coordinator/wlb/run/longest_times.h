/*
 * How long the longest of the newest saves and steps of a run took in the earlier starts of its job: a start may end
 * before it has saved once. The file, RUN.times, holds "SUBMIT_TIME SAVE_S STEP_S BEFORE_S BLOCK_S COUNT" (job_file.h):
 * the last three are of the saves, struct wlb_run_longest, and missing in files of earlier versions.
 */
#ifndef COORDINATOR_WLB_RUN_LONGEST_TIMES_H
#define COORDINATOR_WLB_RUN_LONGEST_TIMES_H

#include "coordinator/wlb/run/state.h"

/* Reads them into run->progress, in which there is nothing yet. The run must have its name. */
void wlb_run_longest_times_read(struct wlb_run *run);
/* Replaces the file. Prints a line where that fails. */
void wlb_run_longest_times_write(const struct wlb_run *run);

#endif

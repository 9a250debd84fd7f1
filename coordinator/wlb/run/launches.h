/*
 * Which `wlb run` of its job this is. Its number is in the name of the run (12, then 12.2), and under this name a job
 * that was requeued goes on with the run. The file JOB.launches in the spool directory has a line
 *
 *     SUBMIT_TIME RESTART_COUNT LAUNCHES
 *
 * of the present start of the job, in which the numbers up to LAUNCHES may be in use, and one for each number from 1
 * on:
 *
 *     COMMAND IS_USED
 *
 * with a digest of the command's words and directory, and whether a `wlb run` of this start has the number. The
 * coordinator gives another number where a `wlb run` with another spool directory has it already. Files of
 * earlier versions have the first line alone: their numbers are in the order of the starts.
 */
#ifndef COORDINATOR_WLB_RUN_LAUNCHES_H
#define COORDINATOR_WLB_RUN_LAUNCHES_H

#include "coordinator/wlb/run/state.h"
#include "libwlb/wlb.h"

/* Sets *launch to the number that this command had in an earlier start of the job; equal commands get theirs in order.
 * A command that no earlier start had, such as a command whose words differ in each start, gets the number of its place
 * among the `wlb run` of this start where that number is unused, else a new number. Returns -1 with the reason and the
 * remedy where the file cannot be written. The next `wlb run` then finds the old numbers in the file, or takes 1 where
 * the file cannot be read either, and the coordinator finds that the number is in use. */
int wlb_run_launches_count(const struct wlb_run_job *job, char *const *command, int *launch, struct wlb_error *error);
/* The run has another number than was counted: this run gets the given number again after a requeue, and no other run
 * of this directory gets it. Returns as above. */
int wlb_run_launches_move(const struct wlb_run_job *job, char *const *command, int counted, int given,
                          struct wlb_error *error);

#endif

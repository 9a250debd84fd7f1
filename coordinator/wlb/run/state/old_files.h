/*
 * Removes what old jobs have left in the spool directory beside their records: JOB.json (journal.h),
 * machine-RUN*.json, error-JOB-*.json (first_error.h), metrics-JOB-*.jsonl (follower.h), trainer-RUN.yaml (start_command.c) and
 * stop-JOB-* (stop_file.h). The job itself cannot: it may be requeued as long as Slurm knows it.
 */
#ifndef COORDINATOR_WLB_RUN_STATE_OLD_FILES_H
#define COORDINATOR_WLB_RUN_STATE_OLD_FILES_H

#include "coordinator/wlb/run/state/state.h"

/* Removes the files that were not written for 30 days and are of jobs that Slurm does not know any more, a few at a
 * time: each job calls this once. */
void wlb_run_old_files_remove(const struct wlb_run_job *job);

#endif

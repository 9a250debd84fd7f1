/*
 * The error of the ranks of an attempt, as the user sees it at the attempt's end: from the end of srun's stderr, which
 * has the lines of all ranks, or else from the file that torch.distributed.elastic writes for the task that ended
 * first. The record alone has, or else, the last line of stderr before a task ended by itself. The file is in the spool
 * directory, under a name that the plugin makes TORCHELASTIC_ERROR_FILE of the task from WLB_ERROR_FILES. torchrun
 * writes there what its own ranks wrote; ranks may have written their lines elsewhere.
 */
#ifndef COORDINATOR_WLB_RUN_ATTEMPT_FIRST_ERROR_H
#define COORDINATOR_WLB_RUN_ATTEMPT_FIRST_ERROR_H

#include "common/output_tail.h"
#include "coordinator/wlb/run/state/state.h"

/* Writes what begins the path of each task's file, "" where there is no directory, or the path is too long. */
void wlb_run_error_files(const struct wlb_run_job *job, const char *attempt_id, char *begin, size_t size);

/* Where the attempt has failed, sets attempt->error and prints it; removes the files. */
void wlb_run_find_error(const struct wlb_run *run, struct wlb_attempt *attempt, const struct wlb_output_tail *tail);

#endif

/*
 * When the command must be asked to save and stop, since the job will end: its time limit is near, or it is preempted
 * and its grace time runs. Slurm is asked for both again and again, since an administrator may change the limit.
 */
#ifndef COORDINATOR_WLB_RUN_STOP_TIME_LIMIT_H
#define COORDINATOR_WLB_RUN_STOP_TIME_LIMIT_H

#include <stdbool.h>

#include "coordinator/wlb/run/state/state.h"
#include "libwlb/wlb.h"

/* Reads --stop-before-end. Returns -1 with the rule. */
int wlb_run_limit_read_option(struct wlb_run *run, struct wlb_error *error);
/* To be called once the job is loaded and the run has its name. */
void wlb_run_limit_open(struct wlb_run *run);

/* Reads how long the steps and saves of the attempt that runs have taken, and whether its trainer asks by itself
 * (stop_file.h). May be called as often as wanted. */
void wlb_run_limit_read_times(struct wlb_run *run, const char *attempt_id);
/* Returns why the command must be asked now, if it must. May be called as often as wanted. */
enum wlb_run_stop wlb_run_limit_check(struct wlb_run *run);

/* Asks Slurm at once, for a process that has just received SIGTERM. Returns whether the job runs in the grace time of
 * its preemption, and its command can be asked. */
bool wlb_run_limit_is_preempted(struct wlb_run *run);

/* Seconds until the job's end, as far as it is known. */
double wlb_run_limit_left_s(const struct wlb_run *run);

#endif

/*
 * Follows the trainer of an attempt step by step, for the record of the run, without a change to its program: by the
 * files of WLB_METRICS_FILE and of WLB_HOOK_FILE, event files of TensorBoard, and what it prints.
 *
 * It reads on a thread of its own, for which nothing waits: a file system that hangs stops the thread alone. Records go
 * to the spool of the attempt's reporter, whose numbers have each stored once. wlb-worker records its own steps and is
 * not followed.
 */
#ifndef COORDINATOR_WLB_RUN_FOLLOW_FOLLOWER_H
#define COORDINATOR_WLB_RUN_FOLLOW_FOLLOWER_H

#include "coordinator/client/reporter.h"
#include "coordinator/wlb/run/state/state.h"
#include "libwlb/wlb.h"

struct wlb_run_follower;

/* Writes what begins the path of each node's file of metrics, which the plugin completes with the node's number; ""
 * where there is no directory, or the path is too long. */
void wlb_run_metrics_files(const struct wlb_run_job *job, const char *attempt_id, char *begin, size_t size);

/* Checks --step-pattern. Returns -1 with what is wrong. */
int wlb_run_check_step_pattern(const struct wlb_run_options *options, struct wlb_error *error);

/* Starts to follow an attempt before its srun is started; NULL where it is not followed, which is printed if it should
 * be. The reporter is used until stop. */
struct wlb_run_follower *wlb_run_follower_start(const struct wlb_run *run, const struct wlb_attempt *attempt,
                                                struct wlb_reporter *reporter);

/* The attempt has ended: has the rest read, for limit_ms at most, and prints what was left out. NULL allowed. */
void wlb_run_follower_stop(struct wlb_run_follower *follower, int limit_ms);

#endif

/*
 * Whether other `wlb run` work in the same job, as where a script has `wlb run A & wlb run B & wait`: a requeue ends
 * all of them. Each `wlb run` holds a lock of the file JOB.running in the spool directory, which the kernel releases
 * when the process ends.
 */
#ifndef COORDINATOR_WLB_RUN_OTHER_RUNS_H
#define COORDINATOR_WLB_RUN_OTHER_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#include "libwlb/wlb.h"

/* Says that this run works in the job. Returns the file, which the two functions below take; -1 where it cannot be
 * locked, as on a file system without locks. */
int wlb_run_others_open(const char *spool_dir, uint32_t job_id, struct wlb_error *error);
/* Whether another run has opened the file, and has not left. */
bool wlb_run_others_work(int fd);
/* Says that this run works no more: others need not wait for it. */
void wlb_run_others_leave(int fd);

#endif

/* How many tasks `wlb run` starts. */
#ifndef COORDINATOR_WLB_RUN_STATE_JOB_TASKS_H
#define COORDINATOR_WLB_RUN_STATE_JOB_TASKS_H

#include "coordinator/wlb/run/state/state.h"
#include "libwlb/wlb.h"

/* Sets the tasks of each node and its GPUs: from --tasks-per-node, else as the job was submitted, else one for each
 * GPU, else as many as fit. Returns -1 where the nodes would have different numbers: the message has the remedy. */
int wlb_run_job_tasks(struct wlb_run *run, struct wlb_error *error);

#endif

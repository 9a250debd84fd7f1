/* One attempt to run the command: a plan, a step of Slurm, and the record of how it ended. */
#ifndef COORDINATOR_WLB_RUN_ATTEMPT_ATTEMPT_H
#define COORDINATOR_WLB_RUN_ATTEMPT_ATTEMPT_H

#include "coordinator/wlb/run/state/state.h"
#include "libwlb/wlb.h"

/* From the end of srun to the end of this process; with wlb-worker's time before, less than a second. Slurm kills this
 * process KillWait after SIGTERM. */
enum { WLB_ATTEMPT_END_MS = 600 };

int wlb_attempt_new_id(char id[37], struct wlb_error *error);

/* Fills in an attempt on all nodes of the job, with a layout computed here. */
int wlb_attempt_decide_alone(const struct wlb_run *run, struct wlb_attempt *attempt, struct wlb_error *error);

/* Runs the attempt, whose nodes are decided, from start to end, and sets what struct wlb_attempt has of its end, and
 * run->end_until_ms. Returns -1 with the reason if it could not be started. */
int wlb_attempt_run(struct wlb_run *run, struct wlb_attempt *attempt, struct wlb_error *error);

/* Releases what was needed to start the attempt. How it ended remains. */
void wlb_attempt_free(struct wlb_attempt *attempt);

#endif

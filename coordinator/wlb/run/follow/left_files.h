/*
 * The files of metrics that a killed `wlb run` has left: what was said in its last second is in them, and not in its
 * record. They are told again from their beginning, into its spool, since what is stored already stays as it is.
 */
#ifndef COORDINATOR_WLB_RUN_FOLLOW_LEFT_FILES_H
#define COORDINATOR_WLB_RUN_FOLLOW_LEFT_FILES_H

#include "coordinator/wlb/run/state/state.h"

/* Tells what attempts of this job have left whose launcher has gone, and removes it; takes 2 s at most. */
void wlb_run_take_left_files(const struct wlb_run_job *job);

#endif

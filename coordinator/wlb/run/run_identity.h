/*
 * Which `wlb run` of its job this is. Its number is in the name of the run (12, then 12.2), and under this name a job
 * that was requeued goes on with the run. The numbers are in the journal (journal.h): entry K of `runs` has as `key` a
 * digest of the words and the directory of the command of number K, and `is_used` says whether a `wlb run` of this
 * start of the job has the number. The coordinator gives another number where a `wlb run` with another spool directory
 * has it already.
 */
#ifndef COORDINATOR_WLB_RUN_RUN_IDENTITY_H
#define COORDINATOR_WLB_RUN_RUN_IDENTITY_H

#include "coordinator/wlb/run/state.h"
#include "libwlb/wlb.h"

/* Sets run->launch to the number that this command had in an earlier start of the job, and says that it works; equal
 * commands get theirs in order. A command that no earlier start had, such as a command whose words differ in each
 * start, gets the number of its place among the `wlb run` of this start where that number is unused, else a new number.
 * Returns -1 with the reason and the remedy where the journal cannot be written. The next `wlb run` then finds the old
 * numbers in it, or takes 1 where it cannot be read either, and the coordinator finds that the number is in use. */
int wlb_run_identify(struct wlb_run *run, struct wlb_error *error);

/* The coordinator has given the run the number `given`: this run gets it again after a requeue, and no other run of
 * this directory gets it. Returns as above. */
int wlb_run_identity_move(struct wlb_run *run, int given, struct wlb_error *error);

#endif

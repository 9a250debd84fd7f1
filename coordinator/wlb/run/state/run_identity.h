/*
 * Which `wlb run` of its job this is. Its number is in the name of the run (12, then 12.2), and under this name a job
 * that was requeued goes on with the run. The numbers are in the journal (journal.h): entry K of `runs` has as `key`
 * the NAME of `wlb run --name NAME`, else a digest of the words and the directory of its command, and `is_used` says
 * whether a `wlb run` of this start of the job has the number. The coordinator gives another number where a `wlb run`
 * with another spool directory has it already.
 */
#ifndef COORDINATOR_WLB_RUN_STATE_RUN_IDENTITY_H
#define COORDINATOR_WLB_RUN_STATE_RUN_IDENTITY_H

#include "coordinator/wlb/run/state/state.h"
#include "libwlb/wlb.h"

/* Returns -1 with the rule for NAME where it does not follow it. */
int wlb_run_identity_check_name(const char *name, struct wlb_error *error);

/* Sets run->launch to the number that this name or this command had in an earlier start of the job, and says that the
 * run works. Equal commands get their numbers in order, which is told where they work at the same time: the order may
 * be another one in the next start. The only run of a job goes on with other words too, such as the address of its
 * first node. Any other that no earlier start had gets a new number: no run continues the record of another.
 *
 * Returns -1 where another run with the same name works. Where the journal cannot be written, prints the reason and the
 * remedy: the next `wlb run` then finds the old numbers in it, or takes 1 where it cannot be read either, and the
 * coordinator finds that the number is in use. */
int wlb_run_identify(struct wlb_run *run, struct wlb_error *error);

/* The coordinator has given the run the number `given`: this run gets it again after a requeue, and no other run of
 * this directory gets it. Where the journal cannot be written it stays as it is. */
void wlb_run_identity_move(struct wlb_run *run, int given);

#endif

/*
 * Takes in nodes again after a node failure (--wlb-grow): nodes of the job that did not answer and are usable again,
 * or, where Slurm took nodes from the job, others that are idle. The attempt is then asked to save and stop
 * (save_and_requeue.h), and the next one begins in the same job, or Slurm requeues the job. Growths that bring nothing
 * become rarer; what is known of them is in the journal, since a job that is requeued starts another `wlb run`.
 *
 * Only the coordinator knows whether a node was lost twice or evicted, so its answer to the attempt names the nodes
 * that may be used again (attempt->unresponsive). A job is requeued because it cannot be given more nodes safely
 * (docs/slurm-versions.md). Slurm is asked once more before that: where the nodes are gone, or Slurm refuses, the run
 * goes on in its job. No run is stopped for a requeue while another run of the job works.
 */
#ifndef COORDINATOR_WLB_RUN_STOP_GROW_H
#define COORDINATOR_WLB_RUN_STOP_GROW_H

#include <stdbool.h>

#include "coordinator/client/reporter.h"
#include "coordinator/wlb/run/state/state.h"

/* To be called once the job is loaded. Prints a line where the option has no effect, or not its whole effect.
 * `will_continue`: the command, started again, continues from what it has saved. */
void wlb_run_grow_open(struct wlb_run *run, bool will_continue);

/* The nodes of the next attempt are decided: finds out what the growth before it has brought, which becomes a part of
 * attempt->reason. */
void wlb_run_grow_begin(struct wlb_run *run, struct wlb_attempt *attempt);
/* Records that. */
void wlb_run_grow_record(struct wlb_run *run, struct wlb_reporter *reporter);

/* Whether the attempt that runs shall save and stop so that the run can grow: run->grow then says why. May be called as
 * often as wanted. */
bool wlb_run_grow_check(struct wlb_run *run, const struct wlb_attempt *attempt);

/* Whether the job must be requeued now that the attempt has stopped. The nodes for which it has may be gone. */
bool wlb_run_grow_needs_requeue(struct wlb_run *run, const struct wlb_attempt *attempt);

#endif

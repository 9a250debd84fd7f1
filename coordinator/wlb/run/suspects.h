/*
 * Checks the nodes that an attempt excludes although they answer, since ranks on them hung, were slow or died. The
 * checks are steps of the job beside the attempt, one after the other: `wlb check-node` on the node, then `wlb
 * check-links` between the node and some nodes of the attempt. The coordinator keeps what the checks find: a node that
 * passes both is used again from the next attempt of this run on, once.
 */
#ifndef COORDINATOR_WLB_RUN_SUSPECTS_H
#define COORDINATOR_WLB_RUN_SUSPECTS_H

#include "coordinator/wlb/run/state.h"

/* The nodes of an attempt are decided; its reporter, which may be NULL, records the nodes that cannot be checked. */
void wlb_run_suspects_begin(struct wlb_run *run, const struct wlb_attempt *attempt, struct wlb_reporter *reporter);

/* Starts the next check, or takes what a check has found: a node that passed is added to attempt->unresponsive, for
 * which a run that may grow stops. What the coordinator does not take, since it is unavailable, is sent again. To be
 * called each moment while the attempt runs; it does not block longer than a request to the coordinator. */
void wlb_run_suspects_check(struct wlb_run *run, struct wlb_attempt *attempt);

/* The attempt has ended: a check that still runs is ended, too, and what the coordinator has not taken is sent for the
 * last time where a next attempt may follow. */
void wlb_run_suspects_end(struct wlb_run *run, struct wlb_attempt *attempt);

#endif

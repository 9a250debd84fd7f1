/*
 * Checks the nodes that an attempt excludes although they answer, since ranks on them hung, were slow or died. The
 * checks are steps of the job beside the attempt, one after the other: `wlb check-node` on the node, then `wlb
 * check-links` between the node and some nodes of the attempt. The coordinator keeps what the checks find: a node that
 * passes both is used again from the next attempt of this run on, once.
 */
#ifndef COORDINATOR_WLB_RUN_CHECK_SUSPECTS_H
#define COORDINATOR_WLB_RUN_CHECK_SUSPECTS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "coordinator/wlb/run/check/check_step.h"
#include "coordinator/wlb/run/state/state.h"

struct wlb_run_suspects {
	struct wlb_reporter *reporter; /* of the attempt, for events; NULL: none */
	json_t *nodes; /* names that are still to be checked, and that which is checked, the first; NULL: none */
	int64_t begin_ms;
	struct wlb_check_step step; /* of the first */
	int64_t seen_ms;            /* when the checks were last looked at; 0: never */
	bool was_suspended;         /* this process was, and with it its job, since the check of the first began */
	json_t *found;  /* by `wlb check-node` on the first, which passed: its links are checked now; else NULL */
	json_t *linked; /* names of the first and of the nodes to which its links are checked */
	json_t *unsent; /* [{"node": NAME, "found": {...}}], which the coordinator has not taken yet; NULL: none */
	int64_t next_send_ms;
};

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

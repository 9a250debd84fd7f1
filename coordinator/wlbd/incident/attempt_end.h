/*
 * Judges the symptoms of an attempt by the rules of incident.h, and acts on what it finds: PostgreSQL records it, the
 * attempt's processes are ordered to end, and a lost node is given to lost_nodes.h.
 */
#ifndef COORDINATOR_WLBD_INCIDENT_ATTEMPT_END_H
#define COORDINATOR_WLBD_INCIDENT_ATTEMPT_END_H

#include <jansson.h>

#include "coordinator/wlbd/attempts/attempts.h"

enum { WLBD_RUN_ATTEMPTS_MAX = 64 }; /* in memory; wlb_attempt_ensure of the schema bounds how many have not ended */

/* The callback of every attempt's judge_timer; `attempt` is a struct wlbd_attempt. Judges, and sets the timer again
 * where not enough is known. */
void wlbd_attempt_end_judge(evutil_socket_t fd, short what, void *attempt);

/* Whether the attempt has lost nodes, and wlb-agent has said of each other node that all of its tasks have ended. */
bool wlbd_attempt_survivors_ended(const struct wlbd_attempt *attempt);

/* Whether symptoms of the attempt are still to be judged. */
bool wlbd_attempt_end_is_pending(const struct wlbd_attempt *attempt);

/* The attempt is ended because of a fault, which `reason` names and which has been recorded. */
void wlbd_attempt_end_evict(struct wlbd_attempt *attempt, const char *reason);

/* A newer attempt of the run has begun: what is left of this one is ordered to end. */
void wlbd_attempt_end_supersede(struct wlbd_attempt *attempt, int64_t newer);

/* Called after `added` was put into memory. Ends the attempts of its run beyond the newest WLBD_RUN_ATTEMPTS_MAX,
 * which have ended in the database, and removes each of them of which nothing is under way. `added` stays. */
void wlbd_attempt_end_older(struct wlbd *wlbd, const struct wlbd_attempt *added);

/* The state of the attempt as the JSON of wlb_attempt_json() of the schema says it: the attempt was just put into
 * memory.
 */
void wlbd_attempt_end_restore(struct wlbd_attempt *attempt, const json_t *json);

/* No node has a slurmstepd of the attempt's step left, and its srun waits. */
void wlbd_attempt_end_no_stepd(struct wlbd_attempt *attempt);

/* Has Slurm kill the step of an attempt whose processes did not end by order. To be called each second. */
void wlbd_attempt_end_kill_overdue(struct wlbd_attempt *attempt, int64_t now_ms);

/* The slurmstepd of the attempt's step on the node is dead. */
void wlbd_attempt_end_stepd_gone(struct wlbd_attempt *attempt, const char *node);

#endif

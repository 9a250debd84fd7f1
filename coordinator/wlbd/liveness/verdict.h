/*
 * Who is dead: reports come in, connections end, nodes are probed; incident.h judges. What is found goes to
 * PostgreSQL, into the orders that reporters get, and to Slurm.
 */
#ifndef COORDINATOR_WLBD_LIVENESS_VERDICT_H
#define COORDINATOR_WLBD_LIVENESS_VERDICT_H

#include "coordinator/wlbd/liveness/attempts.h"
#include "coordinator/wlbd/requests/first_exit.h"

struct wlbd;

/* The reporter said something over `connection` (NULL: it is closed already). */
void wlbd_verdict_alive(struct wlbd_reporter *reporter, struct wlbd_connection *connection);
void wlbd_verdict_goodbye(struct wlbd_reporter *reporter);
void wlbd_verdict_rank_gone(struct wlbd_reporter *reporter, int rank);
/* The rank ended with this exit code, 128 + signal when it was killed. */
void wlbd_verdict_rank_exited(struct wlbd_reporter *reporter, int rank, int code);
/* The slurmstepd of the attempt's step on the reporter's node is dead. */
void wlbd_verdict_stepd_gone(struct wlbd_reporter *reporter);

/* The launcher says that the attempt's step has ended, and perhaps what ended it. */
void wlbd_verdict_over(struct wlbd_attempt *attempt, int exit_code, const struct wlbd_first_exit *first);

/* A node of the attempt was found dead when its job's nodes were probed for the next one, or is DOWN in Slurm. */
void wlbd_verdict_node_dead(struct wlbd_attempt *attempt, const char *node);

/* A newer attempt of the run has begun: what is left of this one is told to end. */
void wlbd_verdict_supersede(struct wlbd_attempt *attempt, int64_t newer);

/* The job is over and `kind` of its processes, "launcher_lost" or "script_lost", was killed: `time_s` since 1970, 0
 * where nobody knows when. `node` may be "". */
void wlbd_verdict_job_killed(struct wlbd *wlbd, int64_t run_pk, int64_t attempt_pk, const char *kind, const char *node,
                             const char *detail, double time_s);

/* Something is still being found out about the attempt. */
bool wlbd_verdict_pending(const struct wlbd_attempt *attempt);

/* Once a second: silent nodes, steps that do not end when told to, attempts to forget. */
void wlbd_verdict_tick(struct wlbd *wlbd);
#endif

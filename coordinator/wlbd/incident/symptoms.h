/*
 * Signs that something of an attempt is lost, and signs that it is not: what reporters and launchers report,
 * connections that end, nodes that Slurm or a probe finds dead. attempt_end.h judges them.
 */
#ifndef COORDINATOR_WLBD_INCIDENT_SYMPTOMS_H
#define COORDINATOR_WLBD_INCIDENT_SYMPTOMS_H

#include "coordinator/wlbd/attempts/attempts.h"

/* ---- from a reporter --------------------------------------------------------------------------------- */

/* The reporter has sent a report over `connection`; NULL: that is closed already. It arrived at arrived_ms, and was
 * read once munged had answered. */
void wlbd_symptom_alive(struct wlbd_reporter *reporter, struct wlbd_connection *connection, int64_t arrived_ms);
/* It will not report again, and that is no symptom. */
void wlbd_symptom_goodbye(struct wlbd_reporter *reporter);
/* A rank of its node has vanished; it is not known how. */
void wlbd_symptom_rank_gone(struct wlbd_reporter *reporter, int rank);
/* A rank of its node ended with this exit code, 128 + signal where it was killed. */
void wlbd_symptom_rank_exited(struct wlbd_reporter *reporter, int rank, int code);

/* ---- of an attempt ----------------------------------------------------------------------------------- */

/* Probes the nodes of reporters that have been silent for too long. To be called each second. A node whose agent has
 * died since wlbd was started is probed for as long as the step runs, since nothing reports from it. */
void wlbd_symptom_silent_reporters(struct wlbd_attempt *attempt, int64_t now_ms);
/* A node of the attempt is suspected: it did not answer when the nodes for the next attempt were probed, is DOWN in
 * Slurm, or has not reported since wlbd was started again. It is probed. Returns -1 if out of memory, or where there
 * are too many symptoms. */
int wlbd_symptom_node_silent(struct wlbd_attempt *attempt, const char *node);

/* The same of a node of an attempt that has ended, and not well: of each node that had reported, until it is found
 * lost. */
void wlbd_symptom_node_silent_after_end(struct wlbd_attempt *attempt, const char *node);

/* Probes the nodes of the attempt from which no process reports, 64 of them at most. The end of the launcher ends the
 * reporters too, or comes before they have reported: a node that was lost at the same moment closes no connection
 * then. The same holds for a node that is lost while a step starts, whose ranks on other nodes Slurm kills. */
void wlbd_symptom_silent_nodes(struct wlbd_attempt *attempt);

/* Slurm itself ends the tasks of the step, as the launcher reports; nothing where end->why is NULL. How the step ends
 * is reported later. */
void wlbd_symptom_slurm_ends(struct wlbd_attempt *attempt, const struct wlbd_reported_reason *end);

/* The launcher reports that the attempt's step has ended, and perhaps which rank's exit ended it. `first` may be NULL.
 */
void wlbd_symptom_step_ended(struct wlbd_attempt *attempt, int exit_code, const struct wlbd_first_exit *first);

/* Whether the step has failed, and it is not known which rank ended it: srun does not name the rank where it has its
 * step cancelled, as MPI_Abort does. The agent on its node may report it a moment later. */
bool wlbd_symptom_lacks_first_exit(const struct wlbd_incident *incident);

/* Rank 0 has recorded that the attempt has ended. Its step ends later, as its launcher will report: until then nodes
 * are watched, since srun waits for the tasks of a node that is lost. Without a launcher the record ends the attempt.
 */
void wlbd_symptom_end_recorded(struct wlbd_attempt *attempt, int exit_code);

#endif

/*
 * A step whose processes are gone on every node while its srun still waits. A slurmstepd may die after its ranks have
 * ended and before it has reported that to srun: srun then waits without a bound, and the node's agent has ended
 * already. Once no node reports any more, Slurm is asked whether the step has a slurmstepd left; where it has none, the
 * attempt is ended.
 */
#ifndef COORDINATOR_WLBD_INCIDENT_STEP_END_H
#define COORDINATOR_WLBD_INCIDENT_STEP_END_H

#include "coordinator/wlbd/attempts/attempts.h"

/* The launcher reports the id of the step; NULL: it does not know it yet. An attempt has one step. */
void wlbd_step_end_note_id(struct wlbd_attempt *attempt, const char *id);

/* To be called when a process of a node has reported. The database keeps that one has: a step that is still being
 * launched has no slurmstepd either. */
void wlbd_step_end_note_report(struct wlbd_attempt *attempt);

/* A step that is only recorded, of so many nodes: its attempt goes on without the ranks that die. */
void wlbd_step_end_note_own(struct wlbd_attempt *attempt, int nodes);
/* A rank of it ended with this code. */
void wlbd_step_end_note_own_exit(struct wlbd_attempt *attempt, int code);
/* It has ended once the agents of all its nodes have sent their last report. */
void wlbd_step_end_check_own(struct wlbd_attempt *attempt);

/* To be called each second. Also for an attempt of which a rank has recorded that it is complete, since its launcher
 * may still wait for srun. Only for an attempt whose job Slurm has confirmed. */
void wlbd_step_end_check(struct wlbd_attempt *attempt, int64_t now_ms);

#endif

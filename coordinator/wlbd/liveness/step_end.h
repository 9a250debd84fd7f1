/*
 * A step whose processes are gone on every node while its srun still waits for them: a slurmstepd that dies after its ranks
 * have ended, and before it has told srun, leaves srun waiting without a bound, and its node's agent has ended by then. Once
 * no node reports any more, Slurm is asked whether the step has a slurmstepd left; where it has none, the attempt is ended.
 */
#ifndef COORDINATOR_WLBD_LIVENESS_STEP_END_H
#define COORDINATOR_WLBD_LIVENESS_STEP_END_H

#include "coordinator/wlbd/liveness/attempts.h"

/* A process of the node has reported, for the first time or not: the database stores the first, since a step that is still
 * being launched has no slurmstepd either. */
void wlbd_step_end_note_report(struct wlbd_attempt *attempt);

/* Each second, of an attempt that has neither ended nor been ordered to end. */
void wlbd_step_end_check(struct wlbd_attempt *attempt, int64_t now_ms);

#endif

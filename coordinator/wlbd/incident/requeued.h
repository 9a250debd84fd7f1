/*
 * Attempts whose job was requeued, by its user, an administrator, a preemption or Slurm itself: Slurm then ends the
 * tasks and the script, and kills a launcher that has not reported the requeue in time. Neither end is a fault. The
 * attempt ends for that reason, and its run goes on when the job starts again. Its nodes are watched for a minute
 * longer: one that is lost would keep the job from starting.
 */
#ifndef COORDINATOR_WLBD_INCIDENT_REQUEUED_H
#define COORDINATOR_WLBD_INCIDENT_REQUEUED_H

#include <stdint.h>

struct wlb_slurm_job;
struct wlbd;
struct wlbd_attempt;

/* Asks Slurm whether the attempt's job was requeued; nothing where that is being asked, or known. While it is
 * asked, attempt->incident.is_job_asked is set. */
void wlbd_requeued_ask(struct wlbd_attempt *attempt);

/* Slurm said at asked_ms or later that the job of the run is as in `job`: ends the run's attempts that had begun by
 * then if it was requeued. */
void wlbd_requeued_note(struct wlbd *wlbd, int64_t run_pk, const struct wlb_slurm_job *job, int64_t asked_ms);

/* Ends the attempt in memory where its nodes were watched for long enough since its job was requeued. */
void wlbd_requeued_end(struct wlbd_attempt *attempt, int64_t now_ms);

#endif

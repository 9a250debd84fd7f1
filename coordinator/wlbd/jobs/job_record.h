/* What the database keeps of what Slurm says of the job of a run. */
#ifndef COORDINATOR_WLBD_JOBS_JOB_RECORD_H
#define COORDINATOR_WLBD_JOBS_JOB_RECORD_H

#include <stdbool.h>
#include <stdint.h>

struct wlb_slurm_job;
struct wlbd;

/* Slurm has confirmed that the job of the run exists and belongs to its owner, with `job`: the run is no longer
 * provisional in the database. */
void wlbd_run_confirm(struct wlbd *wlbd, int64_t run_pk, const struct wlb_slurm_job *job);

/* When the job does not hold its nodes: these times are not counted as the run's (time_lost in docs/api.md). What is
 * recorded of the job of an open run: wlb_runs_open() of the schema. */
struct wlbd_job_clock {
	int64_t run_pk;
	uint32_t restart_count;
	bool is_waiting;   /* it is in the queue */
	bool is_suspended; /* since that was recorded it has not been resumed */
};

/* Records what `job`, Slurm's answer of now, says otherwise. */
void wlbd_job_clock_note(struct wlbd *wlbd, const struct wlbd_job_clock *recorded, const struct wlb_slurm_job *job);

#endif

/* When the job of a run does not hold its nodes, as Slurm says: these times are not counted as the run's (time_lost in
 * docs/api.md). */
#ifndef COORDINATOR_WLBD_JOBS_JOB_CLOCK_H
#define COORDINATOR_WLBD_JOBS_JOB_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct wlb_slurm_job;
struct wlbd;

/* What is recorded of the job of an open run: wlb_runs_open() of the schema. */
struct wlbd_job_clock {
	int64_t run_pk;
	uint32_t restart_count;
	bool is_waiting;   /* it is in the queue */
	bool is_suspended; /* since that was recorded it has not been resumed */
};

/* Records what `job`, Slurm's answer of now, says otherwise. */
void wlbd_job_clock_note(struct wlbd *wlbd, const struct wlbd_job_clock *recorded, const struct wlb_slurm_job *job);

#endif

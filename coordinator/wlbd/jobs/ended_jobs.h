/* How long ago jobs ended: where the clocks of this host and of slurmctld differ, or one was set back, since wlbd first
 * saw that the job had ended. */
#ifndef COORDINATOR_WLBD_JOBS_ENDED_JOBS_H
#define COORDINATOR_WLBD_JOBS_ENDED_JOBS_H

#include <stdint.h>
#include <time.h>

struct wlbd_ended_jobs;

/* Returns NULL if out of memory. */
struct wlbd_ended_jobs *wlbd_ended_jobs_new(void);
void wlbd_ended_jobs_free(struct wlbd_ended_jobs *jobs); /* NULL is allowed */

/* Slurm says at now_ms of wlb_clock_ms(), and at now_s by this host's clock, that the job ended at ended_at. Returns
 * how many seconds ago that was: the greater of what the clocks say and of the time since this was first called for
 * this end of the job. */
int64_t wlbd_ended_jobs_ago_s(struct wlbd_ended_jobs *jobs, uint32_t job_id, time_t ended_at, int64_t now_ms,
                              double now_s);

#endif

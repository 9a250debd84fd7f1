/*
 * The Slurm jobs of open runs, polled when job_poll.h says: a run whose job has ended, and whose launcher did not
 * report how, is closed; a job that runs without its script is requeued; a requeued job that lost nodes may start on
 * those that are left.
 */
#ifndef COORDINATOR_WLBD_LIVENESS_JOBS_H
#define COORDINATOR_WLBD_LIVENESS_JOBS_H

struct wlbd;
struct wlbd_jobs;

/* Sets wlbd->job_poll. Returns NULL if out of memory. */
struct wlbd_jobs *wlbd_jobs_new(struct wlbd *wlbd);
void wlbd_jobs_free(struct wlbd_jobs *jobs); /* frees wlbd->job_poll; NULL is allowed */

#endif

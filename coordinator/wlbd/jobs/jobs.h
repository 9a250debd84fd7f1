/*
 * The Slurm jobs of open runs, polled when job_poll.h says. A run is closed when its job has ended and its launcher did
 * not report how. A job that runs without its script is requeued. A requeued job that lost nodes may start on the
 * remaining nodes.
 */
#ifndef COORDINATOR_WLBD_JOBS_JOBS_H
#define COORDINATOR_WLBD_JOBS_JOBS_H

struct wlbd;
struct wlbd_jobs;

/* Sets wlbd->job_poll. Returns NULL if out of memory. */
struct wlbd_jobs *wlbd_jobs_new(struct wlbd *wlbd);
void wlbd_jobs_free(struct wlbd_jobs *jobs); /* frees wlbd->job_poll; NULL is allowed */

#endif

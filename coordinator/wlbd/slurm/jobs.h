/*
 * The Slurm jobs of open runs, looked at every so often: a run whose job is gone without a word is closed, a job that
 * runs without its script is put back into the queue, and a requeued job that lost nodes is let start on those that are
 * left.
 */
#ifndef COORDINATOR_WLBD_SLURM_JOBS_H
#define COORDINATOR_WLBD_SLURM_JOBS_H

struct wlbd;
struct wlbd_jobs;

struct wlbd_jobs *wlbd_jobs_new(struct wlbd *wlbd);
void wlbd_jobs_free(struct wlbd_jobs *jobs);

/* Something happened to a job: look each second for the next half minute. */
void wlbd_jobs_hurry(struct wlbd_jobs *jobs);

#endif

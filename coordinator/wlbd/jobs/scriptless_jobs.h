/*
 * Jobs without a script. Slurm ends or requeues a job whose batch host goes DOWN, but a job submitted with --no-kill
 * stays RUNNING until its time limit. Jobs of open runs are in jobs.h; here are the jobs whose run has ended.
 */
#ifndef COORDINATOR_WLBD_JOBS_SCRIPTLESS_JOBS_H
#define COORDINATOR_WLBD_JOBS_SCRIPTLESS_JOBS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct wlbd;
struct wlb_slurm_job;

/* Whether the job runs without its script. The nodes must have been refreshed before the job was asked for, so that a
 * job that Slurm has ended or requeued is not taken for one without a script. */
bool wlbd_job_has_no_script(struct wlbd *wlbd, const struct wlb_slurm_job *job);

/* Asks Slurm for the job of a row of wlb_runs_left() of the schema. A job without its script is requeued if its run is
 * complete, since commands may follow the run in the script, and ended otherwise. A job that is over is not listed any
 * more. Calls `done` once, later or at once. */
void wlbd_scriptless_job_check(struct wlbd *wlbd, const json_t *row, void (*done)(void *context), void *context);

#endif

/* A run is provisional until Slurm has confirmed that its job exists and belongs to the run's owner. */
#ifndef COORDINATOR_WLBD_JOBS_CONFIRM_RUN_H
#define COORDINATOR_WLBD_JOBS_CONFIRM_RUN_H

#include <stdint.h>

struct wlb_slurm_job;
struct wlbd;

/* Slurm has confirmed it, with `job`: the run is no longer provisional in the database. */
void wlbd_run_confirm(struct wlbd *wlbd, int64_t run_pk, const struct wlb_slurm_job *job);

#endif

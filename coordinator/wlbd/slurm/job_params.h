/* What Slurm says of a job, for the database. */
#ifndef COORDINATOR_WLBD_SLURM_JOB_PARAMS_H
#define COORDINATOR_WLBD_SLURM_JOB_PARAMS_H

#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlbd/database/params.h"

/* Adds the three last parameters of wlb_run_job_note of the schema: the job's name as users know it, its account, its
 * GPUs. NULL: Slurm does not know the job or does not answer, and nothing is noted. The job outlives `params`. */
void wlbd_params_add_job(struct wlbd_params *params, const struct wlb_slurm_job *job);

#endif

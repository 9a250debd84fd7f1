/* Reads the Slurm job that `wlb run` is in. */
#ifndef COORDINATOR_WLB_RUN_STATE_JOB_H
#define COORDINATOR_WLB_RUN_STATE_JOB_H

#include "coordinator/wlb/run/state/state.h"
#include "libwlb/wlb.h"

int wlb_run_job_load(struct wlb_run_job *job, const struct wlb_run_options *options, struct wlb_error *error);
void wlb_run_job_free(struct wlb_run_job *job);
/* Asks Slurm again for the remaining nodes and for the job's end. Returns false if Slurm does not answer; what was
 * known is kept then. */
bool wlb_run_job_refresh(struct wlb_run_job *job);

/* Whether Slurm has left the job that node, as far as is known since the last refresh. */
bool wlb_run_job_has_node(const struct wlb_run_job *job, const char *name);

#endif

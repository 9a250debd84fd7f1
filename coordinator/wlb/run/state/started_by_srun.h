/* Whether `wlb run`, which starts the command on all nodes itself, was started several times by one srun. */
#ifndef COORDINATOR_WLB_RUN_STATE_STARTED_BY_SRUN_H
#define COORDINATOR_WLB_RUN_STATE_STARTED_BY_SRUN_H

#include "libwlb/wlb.h"

/* Returns -1 with what to write instead where this process belongs to a Slurm step of several tasks. The environment
 * alone does not tell: a script that was submitted in such a step has its variables too. So they count only where the
 * slurmstepd of that step is an ancestor of this process, as far as /proc shows it. */
int wlb_run_refuse_several(struct wlb_error *error);

#endif

/* Whether a step has a slurmstepd left, asked on a thread, since libslurm blocks. */
#ifndef COORDINATOR_WLBD_SLURM_STEP_ASK_H
#define COORDINATOR_WLBD_SLURM_STEP_ASK_H

#include <stdint.h>

struct wlbd;

/* Calls `done` once from the event loop, or at once if out of memory, with what wlb_slurm_step_has_stepd returned: 1,
 * 0, or -1 where that is not known. `slurm_step` is an id such as "12.0"; an id that is not of the job is not known. */
void wlbd_slurm_step_has_stepd(struct wlbd *wlbd, uint32_t job_id, const char *slurm_step,
                               void (*done)(void *context, int has_stepd), void *context);

#endif

/*
 * A step that srun starts with --wlb-layout, outside of a job that has the option: nothing else records it, so the
 * plugin makes it an attempt, and wlb-agent reports its ranks. It is only recorded: no rank is ended because another
 * one is. wlb-worker records itself.
 */
#ifndef SPANK_OWN_STEP_H
#define SPANK_OWN_STEP_H

#include <stdbool.h>
#include <stddef.h>

#include <slurm/spank.h>

#include "libwlb/wlb.h"

/* srun: whether the step is such a one. Call it before the options are exported. */
bool wlb_own_step_is_wanted(void);
/* srun: gives the step the id of an attempt. */
int wlb_own_step_begin(struct wlb_error *error);

/* slurmstepd, of a numbered step: whether it is such a one. What it starts is none. */
bool wlb_own_step_take(spank_t sp);

#endif

/* The plugin in sbatch, salloc and srun. */
#ifndef SPANK_SUBMIT_H
#define SPANK_SUBMIT_H

#include <slurm/spank.h>

#include "spank/state.h"

/* sbatch and salloc, before they read their options. */
void wlb_allocator_clear_environment(void);

/* After the options are read, and before anything is submitted. */
int wlb_submit_options(const struct wlb_spank *plugin);

/* srun, instead: a step outside of a job that has the option is an attempt of its own (own_step.h). */
int wlb_submit_step(const struct wlb_spank *plugin);

/* srun, after Slurm laid out the step and before any task has started: refuses a layout that the nodes of the tasks
 * cannot serve. Here the user sees the message, and -1 ends srun with 1; slurmstepd can do neither. */
int wlb_local_user_init(spank_t sp, const struct wlb_spank *plugin);

#endif

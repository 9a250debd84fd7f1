/* The plugin in srun, after the step is laid out and before any task has started. */
#ifndef SPANK_LOCAL_H
#define SPANK_LOCAL_H

#include <slurm/spank.h>

#include "spank/state.h"

/* -1 ends srun before a task starts. */
int wlb_local_user_init(spank_t sp, const struct wlb_spank *plugin);

#endif

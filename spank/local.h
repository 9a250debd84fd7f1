/* srun: its step is laid out, no task has started. */
#ifndef SPANK_LOCAL_H
#define SPANK_LOCAL_H

#include <slurm/spank.h>

#include "spank/state.h"

/* -1 ends srun before a task starts. */
int wlb_local_user_init(spank_t sp, const struct wlb_spank *plugin);

#endif

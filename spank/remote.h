/* The plugin in slurmstepd. The functions always return 0: a plugin that fails here can drain the node
 * (docs/slurm-versions.md). */
#ifndef SPANK_REMOTE_H
#define SPANK_REMOTE_H

#include <slurm/spank.h>

#include "spank/state.h"

int wlb_remote_init(spank_t sp, struct wlb_spank *plugin);
int wlb_remote_user_init(spank_t sp, struct wlb_spank *plugin);
int wlb_remote_task_init(spank_t sp, const struct wlb_spank *plugin);
int wlb_remote_task_forked(spank_t sp, const struct wlb_spank *plugin);
int wlb_remote_task_exited(spank_t sp, struct wlb_spank *plugin);

#endif

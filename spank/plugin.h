/* What the rooms of the plugin share. plugin.c owns the one struct wlb_spank and dispatches by context. */
#ifndef SPANK_PLUGIN_H
#define SPANK_PLUGIN_H

#include "spank/agent.h"
#include "spank/args.h"
#include "spank/options.h"

struct wlb_spank {
	struct wlb_spank_args args;
	struct wlb_spank_options options;
	struct wlb_spank_agent agent; /* in slurmstepd */
};

/* allocator.c: sbatch and salloc, before they read their options. */
void wlb_allocator_begin(void);

/* submit.c: sbatch, salloc and srun, options read, nothing submitted yet. */
int wlb_submit(const struct wlb_spank *plugin);

/* remote.c: slurmstepd. Always 0: a plugin that fails here can drain the node (docs/slurm-versions.md). */
int wlb_remote_init(spank_t sp, struct wlb_spank *plugin);
int wlb_remote_user_init(spank_t sp, struct wlb_spank *plugin);
int wlb_remote_task_init(spank_t sp, const struct wlb_spank *plugin);
int wlb_remote_task_forked(spank_t sp, const struct wlb_spank *plugin);
int wlb_remote_task_exited(spank_t sp, const struct wlb_spank *plugin);

#endif

/*
 * Refuses in sbatch a layout that the job's tasks can never serve, so that the job does not wait in the queue for that.
 * Slurm tells a plugin in sbatch nothing of the job. What is known for certain is read from sbatch's own words and from
 * the script: the tasks of a node where they are said once, by --ntasks-per-node, and where nothing in the script may
 * start another number. Everything else is left to `wlb run`, which knows the nodes.
 */
#ifndef SPANK_LAYOUT_FIT_H
#define SPANK_LAYOUT_FIT_H

#include "libwlb/wlb.h"

/* Returns the tasks that `wlb run` starts on each node in the script; 0: that is not certain. `words` are those of
 * sbatch before the script, ended by NULL. */
int wlb_layout_fit_tasks(char *const *words, const char *script);

/* Returns -1 with the reason where no number of nodes with so many tasks each can serve the policy, a text of
 * wlb_policy_format. */
int wlb_layout_fit_check(const char *policy, int tasks_per_node, struct wlb_error *error);

/* The same for what this process, where it is sbatch, submits. */
int wlb_layout_fit_submitted(const char *policy, struct wlb_error *error);

#endif

/*
 * The layout of a step and the nodes that its tasks run on, from environment variables: the job's in slurmstepd, srun's
 * own in srun. `entries` is such an environment: "NAME=value", ended by NULL.
 */
#ifndef SPANK_STEP_LAYOUT_H
#define SPANK_STEP_LAYOUT_H

#include <stdbool.h>

#include "libwlb/wlb.h"

/* Whether a step of `tasks` tasks is an attempt: WLB_TP x WLB_CP x WLB_PP x WLB_DP are as many. A step of another size
 * is not the training: nvidia-smi, a copy of files. SLURM_WLB_TP and so on take precedence. */
bool wlb_step_layout(char *const *entries, int tasks, struct wlb_layout *layout);

/* The tasks on each node of a step of `tasks` tasks, in Slurm's order of the nodes, from a variable such as
 * SLURM_STEP_TASKS_PER_NODE=4(x2),3. Returns the number of nodes, and the caller frees *tasks_on; -1 when the variable
 * is missing or does not name that many tasks, or when out of memory: *tasks_on is then unchanged. */
int wlb_step_nodes(char *const *entries, const char *variable, int tasks, int **tasks_on, struct wlb_error *error);

/* The order in which ranks fill the step's `count` nodes, from common/node_order.h; the caller frees it. NULL: Slurm's.
 */
int *wlb_step_order(char *const *entries, int count);

#endif

/* Chooses the machine file that describes the ranks of a run. */
#ifndef PLANNER_MACHINE_CHOOSE_H
#define PLANNER_MACHINE_CHOOSE_H

#include "libwlb/wlb.h"

/* Reads the machine `named` (a name or a file), else that of WLB_MACHINE, else the one whose name is in `gpu_type`, the
 * type of Slurm's GRES ("h100", "nvidia_h100_80gb_hbm3"), else CPU where gpu_type is NULL or "". For the CPU machine
 * that nobody named, the memory of a rank is at most this host's divided by `ranks_per_node`. *from receives what named
 * it. Returns -1 with the value and the remedy. */
int wlb_machine_choose(const char *named, const char *gpu_type, int ranks_per_node, struct wlb_machine *machine,
                       const char **from, struct wlb_error *error);

#endif

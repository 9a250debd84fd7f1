/* Chooses the machine file that describes the ranks of a run. */
#ifndef PLANNER_MACHINE_CHOOSE_H
#define PLANNER_MACHINE_CHOOSE_H

#include "libwlb/wlb.h"

/* *from where nodes of several types are planned with the slowest. */
extern const char wlb_machine_slower[];

/* Reads the first machine that there is of: `named` (a name or a file); WLB_MACHINE; the machine whose name is in the
 * type of Slurm's GRES ("h100", "nvidia_h100_80gb_hbm3", with at most the memory in the type); the line `machine =
 * NAME|FILE` of wlb.conf; CPU, where gpu_types is NULL, which is where no GPU is used. gpu_types "" is GPUs of a type
 * that is not known. Of several types, "h100,a100", it reads the machine with the lowest peak, with the memory of the
 * type that has least; an element that ends in ".json" is a file. For a CPU machine that nobody named, the memory of a
 * rank is at most the memory of this host that the job may use, divided by `ranks_per_node`. *from receives what named
 * it. Returns -1 with the value and the remedy. */
int wlb_machine_choose(const char *named, const char *gpu_types, int ranks_per_node, struct wlb_machine *machine,
                       const char **from, struct wlb_error *error);

#endif

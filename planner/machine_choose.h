/* Chooses the machine file that describes the ranks of a run. */
#ifndef PLANNER_MACHINE_CHOOSE_H
#define PLANNER_MACHINE_CHOOSE_H

#include "libwlb/wlb.h"

/* *from where nodes of several types are planned with the slowest. */
extern const char wlb_machine_slower[];

/* Reads the machine `named` (a name or a file), else that of WLB_MACHINE, else the one whose name is in the type of
 * Slurm's GRES ("h100", "nvidia_h100_80gb_hbm3", with at most the memory in the type), else the one that the line
 * `machine = NAME|FILE` of wlb.conf names, else CPU where gpu_types is NULL, which is where no GPU is used; "" are GPUs
 * of a type that is not known. Of several types, "h100,a100", it reads the machine with the lowest peak, with the
 * memory of the one that has least; an element that ends in ".json" is a file. For the CPU machine that nobody named,
 * the memory of a rank is at most what the job may use of this host's, divided by `ranks_per_node`. *from receives what
 * named it. Returns -1 with the value and the remedy. */
int wlb_machine_choose(const char *named, const char *gpu_types, int ranks_per_node, struct wlb_machine *machine,
                       const char **from, struct wlb_error *error);

#endif

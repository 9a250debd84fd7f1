/* The nodes that Slurm could give a job if it was requeued now. */
#ifndef COORDINATOR_SLURM_SUPPLY_H
#define COORDINATOR_SLURM_SUPPLY_H

#include "coordinator/slurm/slurm_api.h"
#include "libwlb/wlb.h"

struct wlb_slurm_supply {
	char **usable; /* nodes of the job that answer and are not drained; wlb_slurm_supply_free releases them */
	int usable_count;
	int idle; /* nodes of its partition that are idle and nothing else, and like one of the job's nodes */
};

/* Asks for a job that runs. A node that is reserved, planned for another job, drained, powered down or not responding
 * is not idle. Nodes are alike that have the same CPUs, memory, GRES and features. Where the partition starts no jobs,
 * none is idle. Free with wlb_slurm_supply_free. */
int wlb_slurm_supply(const struct wlb_slurm_job *job, struct wlb_slurm_supply *supply, struct wlb_error *error);
void wlb_slurm_supply_free(struct wlb_slurm_supply *supply);

#endif

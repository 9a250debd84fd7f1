/*
 * The list of an attempt's nodes for srun, where ranks do not fill the nodes in Slurm's order, or the last node has
 * fewer ranks.
 *
 * Slurm numbers the nodes of a step by name, whatever the switches are. Where the order by switches differs, srun
 * gets --distribution=arbitrary and a list of the node of each rank, a memory file that srun inherits. So the rank that
 * Slurm and PMIx give a process is its place in the layout, also in a trainer that reads SLURM_PROCID or PMIX_RANK
 * alone. With a list srun accepts no distribution over sockets and cores, so the user's is dropped.
 */
#ifndef COORDINATOR_WLB_RUN_ATTEMPT_HOST_LIST_H
#define COORDINATOR_WLB_RUN_ATTEMPT_HOST_LIST_H

#include "coordinator/wlb/run/state/state.h"
#include "libwlb/wlb.h"

struct wlb_host_list {
	int fd;      /* a memory file that a child inherits: the node of each rank, a line each; -1: there is none */
	char *order; /* of the nodes, as common/node_order.h has it; NULL: ranks fill the nodes in Slurm's order, each
	                with as many */
};

/* Compares the order of attempt->nodes with Slurm's. Free the result in any case; it starts with fd -1. */
int wlb_run_host_list(const struct wlb_attempt *attempt, struct wlb_host_list *hosts, struct wlb_error *error);
void wlb_run_host_list_free(struct wlb_host_list *hosts);

#endif

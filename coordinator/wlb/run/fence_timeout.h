/*
 * Finds the nodes on which a fence of PMIx has ended without all ranks, since PMIxTimeout (mpi.conf) was over. Slurm's
 * plugin writes a line for it on each such node, which srun passes on:
 *
 *     slurmstepd: error:  mpi/pmix_v4: pmixp_coll_ring_reset_if_to: n2 [0]: pmixp_coll_ring.c:741: 0x7f1c: collective
 * timeout seq=1
 *
 * PMIx then fails in the ranks of the node, and they end. Which rank ends first says nothing of the cause. Pure parser,
 * no I/O. As first_exit.h says, a task may write such a line too.
 */
#ifndef COORDINATOR_WLB_RUN_FENCE_TIMEOUT_H
#define COORDINATOR_WLB_RUN_FENCE_TIMEOUT_H

#include <stdbool.h>

/* All zero before the first line. */
struct wlb_fence_timeout {
	bool known;       /* false: no fence has ended so */
	char nodes[1024]; /* "n2,n4", each once */
	bool has_more;    /* more nodes than fit into `nodes` */
};

/* Returns whether the line is of this form, and then adds its node. */
bool wlb_fence_timeout_read(struct wlb_fence_timeout *timeout, const char *line);

#endif

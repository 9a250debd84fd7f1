/*
 * The launch of this process: its rank, the number of ranks, and the node of each. They come from PMIx under srun
 * --mpi=pmix and mpirun; a process without a PMIx server is the only rank. No other file calls PMIx.
 */
#ifndef WORKER_LAUNCH_LAUNCH_H
#define WORKER_LAUNCH_LAUNCH_H

#include <stddef.h>
#include <sys/types.h>

#include "libwlb/wlb.h"

struct wlb_launch {
	int rank;
	int size;
	int local_rank; /* among the ranks of this node, in rank order */
	int local_size;
	int node_count;
	char **nodes;        /* [node_count] names, in the launcher's order (PMIX_NODEID; under Slurm SLURM_NODEID) */
	int *ranks_on;       /* [node_count] ranks of each node */
	int *node_of;        /* [size] index into nodes */
	int *order;          /* [node_count] the order in which ranks fill the nodes; NULL: as in `nodes` */
	int has_server;      /* 0: started without PMIx, or after wlb_launch_disconnect */
	char space[256];     /* PMIx namespace */
	int fence_timed_out; /* 1: PMIx gave up a fence, so that the ranks did not find each other */
	int exit_code;       /* of the process where its server does not answer; 1 unless the caller sets another */
};

/* Returns NULL with the reason when the server cannot be reached, or when srun started several tasks without one; the
 * message is "" in tasks whose error another task prints. *exit_code is then the exit code of the process: 75 where the
 * server gave up a fence, which the coordinator takes for no fault of a rank. */
struct wlb_launch *wlb_launch_open(int *exit_code, struct wlb_error *error);
/* Must be called before the world is closed (comm/comm.h). MPI is a client of PMIx too, and when it ends it unloads
 * code that PMIx calls back: it must be the last to leave PMIx, because a late event would call code that is no longer
 * loaded. Only close and node may be called afterwards. */
void wlb_launch_disconnect(struct wlb_launch *launch);
void wlb_launch_close(struct wlb_launch *launch); /* NULL allowed */

/* Returns the nodes and their ranks in libwlb's type; valid until the launch is closed. */
struct wlb_nodes wlb_launch_nodes(const struct wlb_launch *launch);
/* Returns the place of this rank in a layout: wlb_nodes_place. */
int wlb_launch_place(const struct wlb_launch *launch);
const char *wlb_launch_node(const struct wlb_launch *launch, int rank);
/* Returns the rank of a node, by its index there modulo the node's ranks. */
int wlb_launch_rank_on(const struct wlb_launch *launch, int node, int index);

/* Collective: every rank's `blob` becomes rank 0's. The server's limit (PMIxTimeout of Slurm's mpi.conf) bounds the
 * wait for a rank that never calls it. Each call in a run needs its own `key`. */
int wlb_launch_share(struct wlb_launch *launch, const char *key, void *blob, size_t bytes, struct wlb_error *error);

/* Sets *pid to the process of another rank on this node. */
int wlb_launch_peer_pid(struct wlb_launch *launch, int rank, pid_t *pid, struct wlb_error *error);

/* Ends every rank with this exit code; does not return. Where the server does not answer, only this process ends, and
 * srun --kill-on-bad-exit ends the others. */
void wlb_launch_abort(struct wlb_launch *launch, int code) __attribute__((noreturn));

#endif

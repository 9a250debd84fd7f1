/*
 * The nodes and ranks of an attempt: what wlbd decided or rank 0 recorded, and within it only nodes of the job's
 * allocation, as Slurm said it. What a client says of other nodes does not count.
 */
#ifndef COORDINATOR_WLBD_LIVENESS_ATTEMPT_NODES_H
#define COORDINATOR_WLBD_LIVENESS_ATTEMPT_NODES_H

#include <jansson.h>
#include <stdbool.h>

#include "coordinator/wlbd/liveness/names.h"

struct wlb_slurm_job;

struct wlbd_attempt_nodes {
	struct wlbd_names started_on; /* none: that is not known yet */
	struct wlbd_names allocation; /* of the job */
	bool allocation_known;        /* Slurm has said it since wlbd knows the attempt */
	int world_size;               /* 0: not known yet */
	int *node_of_rank;            /* for each rank a place in started_on; NULL: not known yet */
	int *ranks_of_node;           /* for each place in started_on, how many ranks; NULL: not known yet */
};

/* Each returns -1 if out of memory, or where there are more names than the job has nodes (8,192 while that is not
 * known); `nodes` is unchanged then. */
int wlbd_attempt_nodes_set(struct wlbd_attempt_nodes *nodes, const json_t *list);
/* `node_of_rank` has the name of the node of each rank, in the order of ranks. */
int wlbd_attempt_nodes_set_ranks(struct wlbd_attempt_nodes *nodes, const json_t *node_of_rank);
/* A job that has no nodes at the moment leaves the allocation unknown. */
int wlbd_attempt_nodes_set_allocation(struct wlbd_attempt_nodes *nodes, const struct wlb_slurm_job *job);
void wlbd_attempt_nodes_free(struct wlbd_attempt_nodes *nodes);

/* Whether the attempt is known to run on the node. */
bool wlbd_attempt_nodes_have(const struct wlbd_attempt_nodes *nodes, const char *node);

/* The same, and true also where nothing speaks against it because it is not known yet. */
bool wlbd_attempt_nodes_may_have(const struct wlbd_attempt_nodes *nodes, const char *node);

/* Whether the job has the node; true also where Slurm has not said which nodes it has. */
bool wlbd_attempt_nodes_allocated(const struct wlbd_attempt_nodes *nodes, const char *node);

/* At most so many nodes, and so many ranks on one node, can be the attempt's. */
int wlbd_attempt_nodes_most(const struct wlbd_attempt_nodes *nodes);
int wlbd_attempt_nodes_ranks_most(const struct wlbd_attempt_nodes *nodes, const char *node);

/* Whether the rank can be the attempt's on that node. */
bool wlbd_attempt_nodes_may_run(const struct wlbd_attempt_nodes *nodes, const char *node, int64_t rank);

#endif

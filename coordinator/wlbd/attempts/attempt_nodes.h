/*
 * The nodes and ranks of an attempt, as wlbd decided or rank 0 recorded. A node counts only if the job's allocation, as
 * Slurm says it, has the node; other nodes that a client names are ignored.
 */
#ifndef COORDINATOR_WLBD_ATTEMPTS_ATTEMPT_NODES_H
#define COORDINATOR_WLBD_ATTEMPTS_ATTEMPT_NODES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "coordinator/wlbd/attempts/names.h"

struct wlb_slurm_job;
struct wlbd_budget;

/* Begins as {.budget = ..., .uid = ...}. */
struct wlbd_attempt_nodes {
	struct wlbd_budget *budget; /* to which the nodes and ranks that clients name are charged; NULL: they are not */
	uid_t uid;                  /* to whom */
	size_t charged_bytes;
	struct wlbd_names started_on; /* empty: not known yet */
	struct wlbd_names allocation; /* the nodes of the job */
	bool allocation_known;        /* from Slurm */
	int world_size;               /* 0: not known yet; else that of the map, where there is one */
	int *node_of_rank;            /* [mapped_ranks] for each rank an index into started_on; NULL: not known yet */
	int mapped_ranks;
	int *ranks_of_node; /* for each node of started_on its number of ranks; NULL: not known yet */
};

/* These three return -1 if out of memory, where the user holds as much as one user may, or where there are more names
 * than the job has nodes (8,192 while that is not known); `nodes` is unchanged then. `world_size` is 0 where it is not
 * known. */
int wlbd_attempt_nodes_set(struct wlbd_attempt_nodes *nodes, const json_t *list, int world_size);
/* `node_of_rank` is the name of the node of each rank, in the order of ranks. */
int wlbd_attempt_nodes_set_ranks(struct wlbd_attempt_nodes *nodes, const json_t *node_of_rank);
/* A job that has no nodes at the moment leaves the allocation unknown. */
int wlbd_attempt_nodes_set_allocation(struct wlbd_attempt_nodes *nodes, const struct wlb_slurm_job *job);
void wlbd_attempt_nodes_free(struct wlbd_attempt_nodes *nodes);

/* Whether the attempt is known to run on the node. */
bool wlbd_attempt_nodes_have(const struct wlbd_attempt_nodes *nodes, const char *node);

/* The same; true also where the nodes or the allocation are not known yet. */
bool wlbd_attempt_nodes_may_have(const struct wlbd_attempt_nodes *nodes, const char *node);

/* Whether a rank may be recorded on the node: the job has the node, or the attempt was started on it, since Slurm may
 * have taken the node from the job later. True also where either is not known yet. Records of an attempt may arrive
 * when its job, which was requeued, has other nodes. */
bool wlbd_attempt_nodes_may_record(const struct wlbd_attempt_nodes *nodes, const char *node);

/* Whether Slurm has said that the job has the node, or had it. */
bool wlbd_attempt_nodes_confirmed(const struct wlbd_attempt_nodes *nodes, const char *node);

/* Whether the job has the node; true also where its allocation is not known yet. */
bool wlbd_attempt_nodes_allocated(const struct wlbd_attempt_nodes *nodes, const char *node);

/* Returns the node of a rank; NULL: it is not known. */
const char *wlbd_attempt_nodes_of_rank(const struct wlbd_attempt_nodes *nodes, int rank);

/* Return how many nodes the attempt has at most, and how many ranks on one node. */
int wlbd_attempt_nodes_max(const struct wlbd_attempt_nodes *nodes);
int wlbd_attempt_nodes_ranks_max(const struct wlbd_attempt_nodes *nodes, const char *node);

/* Whether the attempt can have the rank on that node, by what is known. */
bool wlbd_attempt_nodes_may_run(const struct wlbd_attempt_nodes *nodes, const char *node, int64_t rank);
/* The same for many ranks of a node: `place` is what wlbd_names_find returns of it in started_on. */
bool wlbd_attempt_nodes_may_run_at(const struct wlbd_attempt_nodes *nodes, int place, int64_t rank);

#endif

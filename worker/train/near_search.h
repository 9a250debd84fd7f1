/* Which near checkpoint is whole on the nodes of this attempt, and where its shards are. */
#ifndef WORKER_TRAIN_NEAR_SEARCH_H
#define WORKER_TRAIN_NEAR_SEARCH_H

#include "worker/checkpoint/near_folder.h"
#include "worker/train/trainer.h"

/* It is on the heap, since a thread that makes no progress keeps using it. */
struct wlb_near_search {
	struct wlb_trainer *trainer;
	const char *folder;                              /* of this node */
	struct wlb_near_name names[WLB_NEAR_LISTED_MAX]; /* on the first rank of the node; step 0: looked at */
	int count;
	struct wlb_near_name name; /* of the checkpoint that was found */
	char path[4096];           /* of its folder on this node, which may not exist */
	double *found;             /* [name.shards + nodes] */
	int facts_node;            /* a node that has its facts */
};

/* Collective. Lists the near checkpoints of this node. Returns 0 or one of the failures. */
int wlb_near_search_list(struct wlb_near_search *search, struct wlb_error *error);
/* Collective. Finds the newest one later than `step` that was not found yet, is whole and has facts; rank 0 says which
 * later ones are not whole. Returns 1; 0 where there is none; or one of the failures. */
int wlb_near_search_next(struct wlb_near_search *search, int64_t step, struct wlb_error *error);
/* Collective, after files of the one that was found have been removed. Returns as wlb_near_search_next whether it is
 * still whole. */
int wlb_near_search_again(struct wlb_near_search *search, struct wlb_error *error);
/* The first node that has the shard, and whether a node has the facts. */
int wlb_near_search_node(const struct wlb_near_search *search, int shard);
bool wlb_near_search_has_facts(const struct wlb_near_search *search, int node);

#endif

/*
 * Where this rank stands in the layout, and the communicators that follow from it.
 *
 * Ranks take their places in the layout node by node: place 0 is the first rank of the first node, and so on, whatever
 * order the launcher dealt ranks to nodes in (srun --distribution=cyclic would else tear tensor-parallel groups apart).
 * Within the places tp varies fastest, then cp, pp, dp (wlb_layout_coordinates).
 */
#ifndef WORKER_PARALLEL_GROUPS_H
#define WORKER_PARALLEL_GROUPS_H

#include "libwlb/wlb.h"
#include "worker/comm/comm.h"

struct wlb_groups {
	struct wlb_layout layout;
	struct wlb_coordinates at;
	int place;              /* of this rank in the layout */
	struct wlb_comm *world; /* the caller's */
	struct wlb_comm *tp;    /* share every layer's matrices */
	struct wlb_comm *cp;    /* share every micro-batch's tokens */
	struct wlb_comm *data;  /* dp x cp ranks that hold the same weights, cp varying fastest: gradients, optimizer */
	struct wlb_comm *pp;    /* the stages of a pipeline, activations going forward */
	struct wlb_comm *pp_back; /* the same ranks, gradients going back: order is kept within a communicator only */
	struct wlb_comm *kv;      /* tensor-parallel ranks that hold the same key and value heads; size 1 where each has
	                           * its own */
	struct wlb_comm *ends;    /* first and last stage, which hold the same embedding when it is tied; on a stage
	                           * between, and where there is one stage, of size 1 */
};

/* place_of[rank] from node_of[rank], for `size` ranks: sorted by node, then rank. */
void wlb_place_ranks(int *place_of, const int *node_of, int size);

/* 0 when the layout can run this model on these ranks, -1 with the numbers and the rule: the product, tp and heads, tp
 * and key heads (one must divide the other), tp and the ranks of every node, stages and layers, and what
 * wlb_plan_check asks. node_name[node] is for the message. */
int wlb_groups_check(const struct wlb_plan *plan, const struct wlb_model *model, const int *node_of,
                     char *const *node_name, int size, struct wlb_error *error);

/* Collective over the world. NULL with the reason. */
struct wlb_groups *wlb_groups_open(struct wlb_comm *world, const struct wlb_layout *layout,
                                   const struct wlb_model *model, const int *node_of, struct wlb_error *error);
void wlb_groups_close(struct wlb_groups *groups); /* collective; NULL allowed; the world stays open */

#endif

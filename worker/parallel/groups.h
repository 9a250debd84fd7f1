/* The communicators of a rank, from its place in the layout (wlb_nodes_place of libwlb). */
#ifndef WORKER_PARALLEL_GROUPS_H
#define WORKER_PARALLEL_GROUPS_H

#include "libwlb/wlb.h"
#include "worker/comm/comm.h"

enum { WLB_KEY_GROUPS_MAX = 1 + WLB_DYNAMIC_CP_SIZES };

struct wlb_groups {
	struct wlb_layout layout;
	struct wlb_coordinates coords;
	int place;              /* of this rank in the layout */
	struct wlb_comm *world; /* the caller's */
	struct wlb_comm *tp;    /* the ranks that share every layer's matrices */
	struct wlb_comm *cp;    /* the ranks that share every micro-batch's tokens */
	/* Groups whose ranks exchange keys and values: [0] is cp. Where the plan has dynamic_cp, [1] on are of the
	 * other numbers of the data group's ranks that a document may be on, the greatest first
	 * (wlb_dynamic_cp_smaller); a rank behind the last whole group is alone. */
	struct wlb_comm *key_groups[WLB_KEY_GROUPS_MAX];
	int key_group_count;
	struct wlb_comm *data; /* dp x cp ranks that hold the same weights, cp varying fastest: gradients, optimizer */
	/* Messages between stages that follow each other in the ring of stages. Each direction and kind has a
	 * communicator of the two ranks, the sender first: the calls of a communicator keep their order, and a stage
	 * that sends before it receives would wait for a neighbour that does the same. Of one rank where there is one
	 * stage. */
	struct wlb_comm *activations_in;  /* from the stage before */
	struct wlb_comm *activations_out; /* to the stage after */
	struct wlb_comm *gradients_in;    /* from the stage after */
	struct wlb_comm *gradients_out;   /* to the stage before */
	struct wlb_comm
		*kv; /* tensor-parallel ranks that hold the same key and value heads; size 1 where no others do */
	struct wlb_comm *tied; /* the stages that hold the same embedding or head: first and last where the embedding is
	                          tied, all where they share the head; of size 1 on other stages */
	/* Of a shared head, else NULL: between the last stage and each other one, the sender first as above. [pp - 1];
	 * NULL for stages of which this rank is neither. */
	struct wlb_comm **head_rows;      /* from the last stage to stage s */
	struct wlb_comm **head_gradients; /* from stage s to the last stage */
};

/* Collective over the world, for the rank at `place` of the plan's layout, which passes wlb_layout_check. Returns NULL
 * with the reason on failure.
 *
 * Whatever the layout, that is one exchange of all ranks; over NCCL then one message with an id from the first rank of
 * each group to each of its others, all at once; then all communicators of a rank are connected side by side. On 2,048
 * nodes with 8 GPUs each (tp=8 cp=2 pp=16 dp=64, shared head) a rank has 39 at most, with the world, and sends at most
 * 153 ids; with dynamic_cp 45 and 399. Before it come the launcher's fence and the two calls of all ranks that choose
 * NCCL. Over MPI the ranks of one group after the other make its communicator, without the others. */
struct wlb_groups *wlb_groups_open(struct wlb_comm *world, const struct wlb_plan *plan, int place,
                                   const struct wlb_model *model, struct wlb_error *error);
/* Returns 1 where `stage` is one of those before the last, and the stages share the head. */
static inline int wlb_groups_share_head(const struct wlb_groups *groups, int stage)
{
	return groups->head_rows != NULL && stage < groups->layout.pp - 1;
}

/* Advances the calls that were started on the edges of the pipeline and in the data group: wlb_comm_progress. */
void wlb_groups_progress(const struct wlb_groups *groups);
void wlb_groups_close(struct wlb_groups *groups); /* collective; NULL allowed; the world stays open */

#endif

/*
 * Which ranks form a communicator of wlb-worker, from its name, its size and the layout. So whoever reads a rank's
 * trace knows the members of its communicators without asking the other ranks.
 *
 * Names are those of worker/parallel/groups.c: "tp", "kv" (the ranks of a tp group that hold the same key head), "cp",
 * "dp", "data" (cp and dp), "tied" (stages that hold the same embedding or head), "world", and edges of the pipeline,
 * sender first: "pp 0>1", "pp_back 1>0", "head 0>3". A communicator of another name that has all ranks is the world.
 */
#ifndef COMMON_GROUP_PLACES_H
#define COMMON_GROUP_PLACES_H

#include "libwlb/wlb.h"

enum wlb_group_kind {
	WLB_GROUP_TP,
	WLB_GROUP_CP,
	WLB_GROUP_EDGE, /* of the pipeline: its two members are the sender and the receiver */
	WLB_GROUP_DP,
	WLB_GROUP_WORLD,
	WLB_GROUP_STAGES, /* of one pipeline */
};

/* A communicator: its kind, and the place in the layout of the member that has the lowest. Equal names and equal first
 * places are one communicator. */
struct wlb_group_id {
	enum wlb_group_kind kind;
	int first;
};

/* Finds the communicator of that name and number of ranks that the rank at `place` is in. Returns -1 where none follows
 * from them. `place` must be one of the layout. */
int wlb_group_find(const struct wlb_layout *layout, const char *name, int ranks, int place, struct wlb_group_id *id);

/* Writes the places of its members, in the order of their ranks in it: [ranks]. */
void wlb_group_members(const struct wlb_layout *layout, const char *name, int ranks, const struct wlb_group_id *id,
                       int *places);

#endif

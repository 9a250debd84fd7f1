/*
 * The ranks, nodes and communicators of an attempt, as libverdict takes them: from the layout, the nodes of the ranks,
 * and the names of the communicators that ranks report. No I/O.
 */
#ifndef COORDINATOR_WLBD_DETECTION_WORLD_H
#define COORDINATOR_WLBD_DETECTION_WORLD_H

#include "coordinator/wlbd/detection/activities.h"
#include "libverdict/wlb_verdict.h"
#include "libwlb/wlb.h"

/* What wlbd knows of an attempt. */
struct wlbd_attempt_ranks {
	const struct wlb_layout *layout;
	int count;
	const int *node_of; /* [count] any numbers from 0 to nodes - 1 */
	int nodes;
	char *const *node_names; /* [nodes] */
	const struct wlbd_activities *activities;
};

struct wlbd_world {
	struct wlb_verdict_world verdict; /* points into the rest */
	int32_t *node_of;                 /* [ranks] from 0, in the order of the lowest rank of each node */
	int *given_node;                  /* [verdict.nodes] its number in wlbd_attempt_ranks */
	const char **node_names;          /* [verdict.nodes] those of wlbd_attempt_ranks */
	int32_t *stage_of;                /* [ranks] */
	int *place_of;                    /* [ranks] in the layout; -1: idle */
	struct wlb_verdict_group *groups;
	char (*names)[WLBD_ACTIVITY_GROUP_NAME_SIZE]; /* of the groups */
	int32_t *members;                             /* of all groups */
	size_t *first;                                /* [ranks + 1] of each rank's communicators in group_of */
	int32_t *member_of;                           /* the rank's number among the members of each of these */
	int32_t *group_of; /* the group of each communicator that a rank has reported, in its order; -1: it has one
	                    * member, or its members are not known */
	size_t bytes;      /* of memory that the world holds */
};

/* Returns -1 if out of memory, or where the layout has more places than there are ranks; the world is empty then.
 * wlbd_world_free releases it. */
int wlbd_world_make(const struct wlbd_attempt_ranks *ranks, struct wlbd_world *world);
void wlbd_world_free(struct wlbd_world *world);

#endif

/*
 * The collectives that ranks wait in: which are the oldest, and which members of their groups have not entered them.
 *
 * Who is in a group follows from its name, its size and the layout (common/group_places.h). A member has not entered a
 * call if its newest report says so and was sent after the call began: reports are up to a second apart, so an older
 * one says nothing about that call.
 */
#ifndef COORDINATOR_WLB_TOP_CALLS_H
#define COORDINATOR_WLB_TOP_CALLS_H

#include "coordinator/wlb/top/ranks.h"

enum { WLB_TOP_CALLS_MAX = 16 };

/* Finds the ranks that have waited longest, each in another call, and the oldest first: at most two for each kind of
 * group, since ranks that wait there usually wait for one another. Returns how many; -1 if out of memory. */
int wlb_top_calls_find(const struct wlb_top_ranks *ranks, const struct wlb_top_rank *callers[WLB_TOP_CALLS_MAX]);

/* Lists are of ranks, in their order. */
struct wlb_top_members {
	int *inside;
	int inside_count;
	int *outside; /* not in the call, by a report that was sent after the call began */
	int outside_count;
	int unknown_count; /* not reported since the call began */
};

/* Finds what the members of the caller's group do in its call. Returns -1 if out of memory. wlb_top_members_free
 * releases the lists. */
int wlb_top_members_find(const struct wlb_top_ranks *ranks, const struct wlb_top_rank *caller,
                         struct wlb_top_members *members);
void wlb_top_members_free(struct wlb_top_members *members);

#endif

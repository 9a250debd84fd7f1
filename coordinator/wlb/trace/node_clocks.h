/*
 * The clocks of the nodes of a run, by the calls that all ranks make together: such a call ends on all of them at about
 * the same moment, so the clock of a node differs from that of the first by the median difference of the ends. The
 * ranks of a node share its clock.
 */
#ifndef COORDINATOR_WLB_TRACE_NODE_CLOCKS_H
#define COORDINATOR_WLB_TRACE_NODE_CLOCKS_H

#include <stdint.h>

#include "libwlb/wlb.h"

enum { WLB_MEETINGS_MOST = 256 };

/* The ends of the first calls of all ranks in a rank's file, in their order. */
struct wlb_meetings {
	int count;
	struct {
		uint64_t seq;
		double end_us;
	} list[WLB_MEETINGS_MOST];
};

struct wlb_node_clocks;

struct wlb_node_clocks *wlb_node_clocks_new(void); /* NULL if out of memory */
void wlb_node_clocks_free(struct wlb_node_clocks *clocks);

/* Adds a node by the meetings of one of its ranks: the first that is added has the clock that all are compared with.
 * Returns -1 with the reason where they have no call in common. */
int wlb_node_clocks_add(struct wlb_node_clocks *clocks, const char *node, const struct wlb_meetings *meetings,
                        struct wlb_error *error);
/* Returns 1 and how far the node's clock is ahead of the first one's; 0: the node was not added. */
int wlb_node_clocks_find(const struct wlb_node_clocks *clocks, const char *node, double *ahead_us);

#endif

/* The part of the page about collectives in progress. */
#ifndef COORDINATOR_WLB_TOP_CALLS_PAGE_H
#define COORDINATOR_WLB_TOP_CALLS_PAGE_H

#include "coordinator/wlb/top/frame.h"
#include "coordinator/wlb/top/ranks.h"

/* Draws two lines for each call, as many as fit, the oldest first. Returns -1 if out of memory. */
int wlb_top_calls_put(struct wlb_top_frame *frame, const struct wlb_top_ranks *ranks);

#endif

/* The nodes and tasks of an attempt that its layout has no rank for. */
#ifndef COORDINATOR_WLB_RUN_IDLE_RANKS_H
#define COORDINATOR_WLB_RUN_IDLE_RANKS_H

#include <jansson.h>

#include "coordinator/wlb/run/state.h"
#include "libwlb/wlb.h"

/* Takes the nodes and tasks out of the attempt that the layout has no rank for: ranks fill each node up to the greatest
 * multiple of tp, as the search has placed them, and the last node has those that are left. One line and the record
 * name them: "idle", the nodes without a rank, and "idle_local_ranks", [{"nodes": "n6", "first": 2, "last": 3}, ...],
 * of nodes with ranks, those that were not started. Returns -1 where the attempt has too few tasks for the layout. */
int wlb_run_leave_idle(const struct wlb_layout *layout, struct wlb_attempt *attempt, json_t *record,
                       struct wlb_error *error);

#endif

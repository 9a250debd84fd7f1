/* The nodes and tasks of an attempt that its layout has no rank for. */
#ifndef COORDINATOR_WLB_RUN_PLAN_IDLE_RANKS_H
#define COORDINATOR_WLB_RUN_PLAN_IDLE_RANKS_H

#include <jansson.h>

#include "coordinator/wlb/run/state/state.h"
#include "libwlb/wlb.h"

/* Takes the nodes and tasks out of the attempt that the layout has no rank for: ranks fill each node up to the greatest
 * multiple of tp, as the search has placed them, and the last node has the rest. One line and the record name what is
 * idle: "idle", the nodes without a rank, and "idle_local_ranks", [{"nodes": "n6", "first": 2, "last": 3}, ...], the
 * tasks that were not started on nodes with ranks. Returns -1 where the attempt has too few tasks for the layout. */
int wlb_run_leave_idle(const struct wlb_layout *layout, struct wlb_attempt *attempt, json_t *record,
                       struct wlb_error *error);

/* Takes the nodes out of the attempt that are behind the layout's, whose ranks a launcher starts. One line and the
 * record name them. */
void wlb_run_leave_nodes(const struct wlb_nodes *of_layout, struct wlb_attempt *attempt, json_t *record);

#endif

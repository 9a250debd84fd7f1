/* Checks where a plan puts the ranks of an attempt; no I/O. */
#ifndef COORDINATOR_WLBD_REQUESTS_PLAN_PLACES_H
#define COORDINATOR_WLBD_REQUESTS_PLAN_PLACES_H

#include <jansson.h>

#include "coordinator/wlbd/requests/attempt_places.h"
#include "libwlb/wlb.h"

/* Checks a plan, which wlbd_plan_check has accepted, against the nodes and tasks of its attempt:
 * - the ranks of the layout and the idle ranks are together the attempt's tasks, and tp fits in the tasks of a node;
 * - `placement`, `idle` and `idle_local_ranks` name nodes of the attempt only, and each node once;
 * - the ranks of `placement` follow each other without a gap, are all of the layout's, and as many as its nodes have;
 * - what is idle has no rank, neither in `placement` nor among those that rank 0 recorded.
 * Where the attempt's nodes are not known (wlbd was down), the nodes that the plan names are taken for them. Returns -1
 * with the value, the rule and the remedy.
 *
 * *names_left is how many names the lists of a delivery's plans may still have, and is counted down: it bounds the time
 * of one request. wlbd_plan_names_most returns its first value. */
int wlbd_plan_places_check(const json_t *data, const struct wlbd_attempt_places *places, int *names_left,
                           struct wlb_error *error);
int wlbd_plan_names_most(const struct wlbd_attempt_places *places);

#endif

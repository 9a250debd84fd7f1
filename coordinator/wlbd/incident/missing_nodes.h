/* The nodes of an attempt that have not reported in time after wlbd was started again. Nothing is known of these nodes,
 * so each is probed until its slurmd has answered, the node is found dead, or a process on it reports. */
#ifndef COORDINATOR_WLBD_INCIDENT_MISSING_NODES_H
#define COORDINATOR_WLBD_INCIDENT_MISSING_NODES_H

#include <stdint.h>

struct wlbd_attempt;

/* Begins, or goes on; called each second while the attempt has not ended. */
void wlbd_missing_nodes_check(struct wlbd_attempt *attempt, int64_t now_ms);

#endif

/* The nodes of an attempt that have not reported in time after wlbd was started again. Nothing is known of these nodes,
 * so each is probed until its slurmd has answered, the node is found dead, or a process on it reports. */
#ifndef COORDINATOR_WLBD_INCIDENT_UNREPORTED_NODES_H
#define COORDINATOR_WLBD_INCIDENT_UNREPORTED_NODES_H

#include <stdint.h>

struct wlbd_attempt;

/* wlbd was started again: the nodes have restart_grace_ms of the settings to report. */
void wlbd_unreported_nodes_expect(struct wlbd_attempt *attempt);

/* Begins, or goes on; called each second while the attempt has not ended. */
void wlbd_unreported_nodes_check(struct wlbd_attempt *attempt, int64_t now_ms);

#endif

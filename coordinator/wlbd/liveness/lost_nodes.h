/*
 * Nodes that an attempt lost are set DOWN in Slurm, which then breaks the steps on them, whoever they belong to. So
 * what a client says is not enough: Slurm must say, at that moment, that the run's job has the node, and wlbd
 * itself must have found the node silent for node_down_after_ms, probe after probe, while no process of it reports.
 */
#ifndef COORDINATOR_WLBD_LIVENESS_LOST_NODES_H
#define COORDINATOR_WLBD_LIVENESS_LOST_NODES_H

#include "coordinator/wlbd/liveness/attempts.h"

struct wlbd_lost_nodes;

struct wlbd_lost_nodes *wlbd_lost_nodes_new(struct wlbd *wlbd);
void wlbd_lost_nodes_free(struct wlbd_lost_nodes *lost);

/* The attempt lost the node: it is watched until it answers or is set DOWN. */
void wlbd_lost_nodes_add(struct wlbd_lost_nodes *lost, const struct wlbd_attempt *attempt, const char *node);

#endif

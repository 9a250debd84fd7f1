/*
 * Nodes that an attempt lost are set DOWN in Slurm, which then breaks the steps on them, of whatever user. So what a
 * client says is not enough: Slurm must say, at that moment, that the run's job has the node, or that the job, which
 * had it during the attempt, is requeued and no other job has the node. And wlbd itself must have found the node
 * silent for node_down_after_ms, in every probe, while no process on it reports.
 */
#ifndef COORDINATOR_WLBD_LIVENESS_LOST_NODES_H
#define COORDINATOR_WLBD_LIVENESS_LOST_NODES_H

#include "coordinator/wlbd/liveness/attempts.h"

struct wlbd_lost_nodes;

/* Returns NULL if out of memory. */
struct wlbd_lost_nodes *wlbd_lost_nodes_new(struct wlbd *wlbd);
void wlbd_lost_nodes_free(struct wlbd_lost_nodes *lost); /* NULL is allowed */

/* The attempt lost the node, which is watched until it answers or is set DOWN. */
void wlbd_lost_nodes_add(struct wlbd_lost_nodes *lost, const struct wlbd_attempt *attempt, const char *node);

#endif

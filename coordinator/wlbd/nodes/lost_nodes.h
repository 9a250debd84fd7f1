/*
 * Nodes that an attempt lost are set DOWN in Slurm, which then breaks the steps on them, of whatever user. So what a
 * client says is not enough: Slurm must say, at that moment, that the run's job has the node; or that the job, which
 * had the node during the attempt, is requeued, and no other job has the node. And wlbd itself must have found the node
 * silent for node_down_after_ms, in every probe, while no process on it reports.
 */
#ifndef COORDINATOR_WLBD_NODES_LOST_NODES_H
#define COORDINATOR_WLBD_NODES_LOST_NODES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct wlbd;

struct wlbd_lost_nodes;

/* Returns NULL if out of memory. */
struct wlbd_lost_nodes *wlbd_lost_nodes_new(struct wlbd *wlbd);
void wlbd_lost_nodes_free(struct wlbd_lost_nodes *lost); /* NULL is allowed */

struct wlbd_lost_node {
	const char *name;
	const char *run;
	uint32_t job_id;
	uid_t uid;           /* of the run's owner */
	bool node_confirmed; /* Slurm has said that the job had the node during an attempt */
};

/* An attempt lost the node, which is watched until it answers or is set DOWN. */
void wlbd_lost_nodes_add(struct wlbd_lost_nodes *lost, const struct wlbd_lost_node *node);

/* The same for a loss that an earlier wlbd may have found, which ended before it had set the node DOWN. Where this wlbd
 * has watched the node for the job before, nothing is done. */
void wlbd_lost_nodes_add_stored(struct wlbd_lost_nodes *lost, const struct wlbd_lost_node *node);

#endif

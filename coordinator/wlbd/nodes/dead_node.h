/* Whether a node is dead, by Slurm's word or by wlbd's own probes. */
#ifndef COORDINATOR_WLBD_NODES_DEAD_NODE_H
#define COORDINATOR_WLBD_NODES_DEAD_NODE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct wlbd;
struct wlbd_node;

/* Whether Slurm has the node DOWN, or it responds neither to slurmctld nor to wlbd's probes (wlbd_node_is_silent). A
 * node that only does not respond to slurmctld may be alive: while a munged does not answer, slurmctld says of no node
 * that it responds. Such a node is probed once in a call, and the job is polled soon, when the caller asks again.
 * `uid`: the job's user. */
bool wlbd_node_is_dead(struct wlbd *wlbd, const struct wlbd_node *node, uint32_t job_id, uid_t uid);

/* The same where a script may work on the node of which no process reports: that its slurmd does not answer proves
 * nothing about it, so that the host itself must be silent (wlbd_node_host_is_silent). */
bool wlbd_host_is_dead(struct wlbd *wlbd, const struct wlbd_node *node, uint32_t job_id, uid_t uid);

#endif

/*
 * Whether a node's slurmd answers, and since when it does not. At most one question of a node is under way: whoever
 * asks meanwhile gets its answer. What is found here is wlbd's own evidence, whatever clients say.
 */
#ifndef COORDINATOR_WLBD_LIVENESS_NODE_PROBE_H
#define COORDINATOR_WLBD_LIVENESS_NODE_PROBE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct wlbd;
struct wlbd_node_probes;

struct wlbd_node_probes *wlbd_node_probes_new(struct wlbd *wlbd);
/* Nodes that are being asked about count as alive. */
void wlbd_node_probes_free(struct wlbd_node_probes *probes);

/*
 * Asks twice before the answer is no. A node that Slurm does not list, or whose name does not resolve, counts as alive:
 * nothing is known against it. So does one from which a process has just reported: one of the user `uid`, on whose
 * behalf is asked, or any whose connection comes from the node's own address. Calls `done` once, perhaps at once.
 */
void wlbd_node_probe(struct wlbd_node_probes *probes, const char *name, uid_t uid,
                     void (*done)(void *context, bool alive), void *context);

/* How long the node has answered none of the probes of it, one after the other, up to the last one; how many those
 * were. Both are 0 for a node that answered the last probe. */
struct wlbd_node_silence {
	int64_t lasted_ms;
	int probes;
};
struct wlbd_node_silence wlbd_node_silence(const struct wlbd_node_probes *probes, const char *name);

#endif

/*
 * Whether a node's slurmd answers, and since when it does not. At most one probe of a node is under way: all who ask
 * meanwhile get its answer. This is wlbd's own evidence, independent of what clients say.
 */
#ifndef COORDINATOR_WLBD_NODES_NODE_PROBE_H
#define COORDINATOR_WLBD_NODES_NODE_PROBE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct wlbd;
struct wlbd_node_probes;

/* Returns NULL if out of memory. */
struct wlbd_node_probes *wlbd_node_probes_new(struct wlbd *wlbd);
/* Answers that nodes whose probe is under way are alive. NULL is allowed. */
void wlbd_node_probes_free(struct wlbd_node_probes *probes);

/*
 * Calls `done` once, perhaps before it returns. A node is dead after two failed probes. Where no packet came from the
 * node, it is dead only once another node has shown that this host's network works (own_network.h). After a time in
 * which no node showed that, the network must have worked for 8 s, since nodes do not all answer at once when a network
 * is back. After 30 s without a proof of the network the node counts as alive. A node that Slurm does not list, or
 * whose name does not resolve, counts as alive, since nothing is known about it. A node counts as alive, too, if a
 * process on it has just reported that belongs to the user `uid`, for whom is asked, or whose connection comes from the
 * node's own address.
 */
void wlbd_node_probe(struct wlbd_node_probes *probes, const char *name, uid_t uid,
                     void (*done)(void *context, bool alive), void *context);

/* How many probes in a row the node has not answered, up to the last one, and how long that took. Both are 0 for a node
 * that answered the last probe. */
struct wlbd_node_silence {
	int64_t lasted_ms;
	int probes;
	bool is_accepted; /* at the last one the node's kernel answered, and its slurmd did not */
};
struct wlbd_node_silence wlbd_node_silence(const struct wlbd_node_probes *probes, const char *name);

/* Whether the node has not answered for node_down_after_ms, and not in four probes, the last of them some seconds ago,
 * and no process on it reports, as above. */
bool wlbd_node_is_silent(const struct wlbd_node_probes *probes, const char *name, uid_t uid);

/* The same of the node's kernel for a minute: it has neither refused nor accepted a connection, as it does while slurmd
 * alone is stopped. */
bool wlbd_node_host_is_silent(const struct wlbd_node_probes *probes, const char *name, uid_t uid);

#endif

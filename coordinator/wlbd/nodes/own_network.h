/*
 * Whether the network of this host works. A node from which no packet comes may be without power, or this host may be
 * without network, and then all nodes seem to be lost. A packet of another node is the proof that the network works:
 * without it an outage of this host would end every run and set every node DOWN.
 */
#ifndef COORDINATOR_WLBD_NODES_OWN_NETWORK_H
#define COORDINATOR_WLBD_NODES_OWN_NETWORK_H

#include <stdbool.h>

#include "coordinator/wlbd/nodes/program_probe.h"
#include "coordinator/wlbd/slurm/nodes.h"

struct wlbd;

enum { WLBD_OWN_NETWORK_PROBES = 3 };

enum wlbd_own_network_state {
	WLBD_OWN_NETWORK_WORKS,  /* another node has answered or refused */
	WLBD_OWN_NETWORK_ALONE,  /* there is no other node to ask */
	WLBD_OWN_NETWORK_SILENT, /* nothing came from any node that was asked */
};

/* One question, which may be asked again when it is answered. All zero: none is asked. */
struct wlbd_own_network {
	struct wlbd_own_network_probe {
		struct wlbd_own_network *question;
		struct wlbd_program_probe *probe; /* NULL: it has ended */
		char node[256];
	} probes[WLBD_OWN_NETWORK_PROBES];
	void (*done)(void *context, enum wlbd_own_network_state state);
	void *context;
};

/* Probes up to three other nodes that Slurm calls neither down nor booting, each chosen at random. Calls `done` once,
 * perhaps before it returns. */
void wlbd_own_network_ask(struct wlbd_own_network *question, struct wlbd *wlbd, const char *silent,
                          void (*done)(void *context, enum wlbd_own_network_state state), void *context);

/* `done` will not be called. */
void wlbd_own_network_cancel(struct wlbd_own_network *question);

/* Whether the node's address is one of this host, which no network is needed to reach. */
bool wlbd_node_is_this_host(const struct wlbd_node *node);

#endif

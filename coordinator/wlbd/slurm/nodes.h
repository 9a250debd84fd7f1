/* Slurm's nodes as wlbd last saw them, with the addresses of their slurmds. */
#ifndef COORDINATOR_WLBD_SLURM_NODES_H
#define COORDINATOR_WLBD_SLURM_NODES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "libwlb/wlb.h"

struct wlbd;
struct wlbd_nodes;

struct wlbd_node {
	char name[256];
	char host[256]; /* NodeAddr */
	uint16_t port;
	struct sockaddr_storage address;
	socklen_t address_length; /* 0: the name is not resolved (yet) */
	bool down;
};

struct wlbd_nodes *wlbd_nodes_new(void);
void wlbd_nodes_free(struct wlbd_nodes *nodes);

/* Asks Slurm on a thread, then calls `then` (with `error` NULL, or why the old table still stands). */
void wlbd_nodes_refresh(struct wlbd *wlbd, void (*then)(void *context, const struct wlb_error *error), void *context);

/* NULL: not in the table. Valid until the event loop is returned to. */
const struct wlbd_node *wlbd_nodes_find(const struct wlbd_nodes *nodes, const char *name);

/* Whether that is the address, whatever the port, of the node's slurmd; an IPv4 address within IPv6 is that address. */
bool wlbd_node_has_address(const struct wlbd_node *node, const struct sockaddr_storage *address);

#endif

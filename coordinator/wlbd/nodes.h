/* Slurm's nodes as wlbd last saw them, with the address of each slurmd already resolved. */
#ifndef WLBD_NODES_H
#define WLBD_NODES_H

#include <stdbool.h>
#include <sys/socket.h>

#include "libwlb/wlb.h"

struct wlbd;
struct wlbd_nodes;

struct wlbd_node {
	char name[256];
	char host[256]; /* NodeAddr */
	struct sockaddr_storage address;
	socklen_t address_length; /* 0: the name did not resolve */
	bool down;
};

struct wlbd_nodes *wlbd_nodes_new(void);
void wlbd_nodes_free(struct wlbd_nodes *nodes);

/* Asks Slurm on its thread, then calls `then` (with `error` NULL, or why the old table still stands). */
void wlbd_nodes_refresh(struct wlbd *wlbd, void (*then)(void *context, const struct wlb_error *error), void *context);

/* NULL: not in the table. Valid until the event loop is returned to. */
const struct wlbd_node *wlbd_nodes_find(const struct wlbd_nodes *nodes, const char *name);

/*
 * Whether the slurmd of the node answers: asked twice before the answer is no. A node that is not in the table, or
 * whose name does not resolve, counts as alive: nothing is known against it. Calls `done` once.
 */
void wlbd_nodes_probe(struct wlbd *wlbd, const char *name, void (*done)(void *context, bool alive), void *context);

#endif

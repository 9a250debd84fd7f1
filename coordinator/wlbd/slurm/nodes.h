/* Slurm's nodes as it last listed them, with the addresses of their slurmds. */
#ifndef COORDINATOR_WLBD_SLURM_NODES_H
#define COORDINATOR_WLBD_SLURM_NODES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>

#include "coordinator/slurm/topology.h"
#include "libwlb/wlb.h"

struct wlbd;
struct wlbd_nodes;

struct wlbd_node {
	char name[256];
	char host[256]; /* NodeAddr */
	uint16_t port;
	struct sockaddr_storage address;
	socklen_t address_length; /* 0: the name is not resolved */
	bool is_numeric;          /* `host` is an address, which needs no name server */
	bool is_outdated;         /* the node was down: its name is resolved again */
	int64_t resolved_ms;      /* when it was last given to the resolver; 0: never */
	/* The following as of struct wlb_slurm_node. */
	bool down, saves_power, responds, allocated, drained;
	char gpu_type[64]; /* in Slurm's GRES, such as "h100"; "": none */
	char reason[256];
	time_t reason_time;
};

/* Returns NULL if out of memory. */
struct wlbd_nodes *wlbd_nodes_new(void);
void wlbd_nodes_free(struct wlbd_nodes *nodes);

/* Asks Slurm on a thread, in the turn of `asker` (0: wlbd itself), then calls `then` from the event loop: `error` is
 * NULL, or says why the old table is kept. */
void wlbd_nodes_refresh(struct wlbd *wlbd, uid_t asker, void (*then)(void *context, const struct wlb_error *error),
                        void *context);

/* Returns how many nodes Slurm has; 0: it has not listed them yet. */
int wlbd_nodes_count(const struct wlbd_nodes *nodes);

/* Whether wlbd, since it was started, has Slurm's list and has asked once for the address of each node. */
bool wlbd_nodes_are_known(const struct wlbd_nodes *nodes);

/* The nodes are sorted by name. Valid until control returns to the event loop. */
const struct wlbd_node *wlbd_nodes_at(const struct wlbd_nodes *nodes, int index);

/* Returns NULL where Slurm has no such node. Valid until control returns to the event loop. */
const struct wlbd_node *wlbd_nodes_find(const struct wlbd_nodes *nodes, const char *name);

/* The node does not answer: a node of a cloud may have another address under the same name. Its name is resolved again
 * on a thread, at most every 10 s; until then its address is the old one. */
void wlbd_nodes_resolve_again(struct wlbd *wlbd, const char *name);

/* Returns Slurm's switches as it last listed them, empty where there are none; NULL where Slurm has not answered yet.
 * Valid until control returns to the event loop. */
const struct wlb_topology_file *wlbd_nodes_topology(const struct wlbd_nodes *nodes);

/* Whether the node's slurmd has this address, on any port; an IPv4 address mapped into IPv6 is the same address. */
bool wlbd_node_has_address(const struct wlbd_node *node, const struct sockaddr_storage *address);

#endif

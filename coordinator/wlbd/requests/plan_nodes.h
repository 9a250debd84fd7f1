/* The node lists of a plan; no I/O. */
#ifndef COORDINATOR_WLBD_REQUESTS_PLAN_NODES_H
#define COORDINATOR_WLBD_REQUESTS_PLAN_NODES_H

#include <stdbool.h>

#include "libwlb/wlb.h"

struct wlbd_plan_nodes {
	char **names;
	int count;
	bool is_cut; /* more nodes follow, whose names a client that keeps its record short has left out */
};

/* Reads "n[1-3,5]". A list of 160 bytes that ends with "..." was cut by `wlb run`: the names before its last comma are
 * read. *names_left is reduced by the names. Returns -1, with nothing to free, at a list of more than `most` or
 * *names_left names, and at one that is not as wlb_hostlist_size wants it. */
int wlbd_plan_nodes_read(const char *text, int most, int *names_left, struct wlbd_plan_nodes *nodes,
                         struct wlb_error *error);
void wlbd_plan_nodes_free(struct wlbd_plan_nodes *nodes);

#endif

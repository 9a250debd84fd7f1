/*
 * Which nodes of the job do not reach each other: asked where wlbd has ended an attempt because ranks of several nodes
 * hung in a collective, so that the next attempt can exclude the node whose link is broken.
 */
#ifndef COORDINATOR_WLB_RUN_CHECK_LINKS_H
#define COORDINATOR_WLB_RUN_CHECK_LINKS_H

#include <jansson.h>

#include "coordinator/wlb/run/state/state.h"
#include "libwlb/wlb.h"

/* Runs wlb-check-links on these nodes, an array of names, for 30 s at most. Returns an object with the names of the
 * unreached nodes for each node that does not reach all; {} where every node reaches all. The caller decrefs it.
 * Returns NULL with the reason where the links could not be checked; run->cancelled or run->abandoned may be set then.
 */
json_t *wlb_run_check_links(struct wlb_run *run, const json_t *nodes, struct wlb_error *error);

/* Returns what the lines of wlb-check-links say as such an object: lines and names of other nodes are ignored, and
 * 4,096 names are kept at most, as many as wlbd takes. Returns NULL where no line is one of a node of the check.
 * Changes `text`. */
json_t *wlb_run_read_links(char *text, const json_t *nodes);

/* How the ranks of wlb-check-links, which print `text`, reach one node. */
enum wlb_link_state {
	WLB_LINK_REACHED,   /* the node reaches all others: it says so, and no other node denies it */
	WLB_LINK_UNREACHED, /* the node does not reach all others */
	WLB_LINK_UNKNOWN,   /* the node says nothing */
};

/* `nodes` are all nodes of the check. The names that the node does not reach, or that do not reach it, are written to
 * `names`, "n1, n3"; as many as fit. Changes `text`. */
enum wlb_link_state wlb_run_link_state(char *text, const json_t *nodes, const char *node, char *names, size_t size);

#endif

/*
 * Marks the nodes that the next attempt avoids for what is known of them: pure logic, no I/O. What wlbd has seen in the
 * runs of all users is evidence by the view node_evidence of the schema, which also says how it loses weight.
 */
#ifndef COORDINATOR_WLBD_RULES_AVOIDANCE_H
#define COORDINATOR_WLBD_RULES_AVOIDANCE_H

#include <stdbool.h>

struct wlbd_known_node {
	const char
		*why; /* "was lost in 2 runs"; NULL: nothing is known against it. Set to NULL where it is not avoided */
	double weight;
	bool is_excluded; /* it is excluded for another reason: it stays avoided, and counts among the nodes that may be
	                excluded */
};

/* At most half of the nodes are excluded, of eight and more a quarter: of the nodes that are still in, the nodes with
 * the most weight, of equals the last. Returns -1 if out of memory. */
int wlbd_avoidance_mark(struct wlbd_known_node *nodes, int count);

#endif

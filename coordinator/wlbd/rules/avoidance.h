/*
 * Marks the nodes that the next attempt avoids for what wlbd has seen of them in the runs of all users: pure logic, no
 * I/O. What is evidence, and how it loses weight, is in the view node_evidence of the schema.
 */
#ifndef COORDINATOR_WLBD_RULES_AVOIDANCE_H
#define COORDINATOR_WLBD_RULES_AVOIDANCE_H

struct wlbd_known_node {
	const char
		*why; /* "was lost in 2 runs"; NULL: nothing is known against it. Set to NULL where it is not avoided */
	double weight;
};

/* At most half of the nodes are avoided, of eight and more a quarter: those with the most weight, of equals the last.
 * Returns -1 if out of memory. */
int wlbd_avoidance_mark(struct wlbd_known_node *nodes, int count);

#endif

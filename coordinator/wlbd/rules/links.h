/* Which node a run excludes where links between its nodes are broken: pure logic, no I/O. */
#ifndef COORDINATOR_WLBD_RULES_LINKS_H
#define COORDINATOR_WLBD_RULES_LINKS_H

struct wlbd_broken_link {
	int from, to; /* nodes; `from` says that it does not reach `to` */
};

/* Returns the node with the most broken links: a node whose own link is broken reaches no other node, while each other
 * node lacks one link only. Of equals the last, since a job's first node has its script. Returns -1 where no link is
 * broken or memory is short. */
int wlbd_links_worst(const struct wlbd_broken_link *links, int count, int node_count);

#endif

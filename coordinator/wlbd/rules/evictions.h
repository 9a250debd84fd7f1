/*
 * Marks the nodes that the next attempt excludes because wlbd ended an earlier one on their account: pure logic, no
 * I/O.
 *
 * Ranks that hang at one step on several nodes are the program's fault, and no node is excluded for them.
 */
#ifndef COORDINATOR_WLBD_RULES_EVICTIONS_H
#define COORDINATOR_WLBD_RULES_EVICTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum {
	WLBD_EVICTION_LASTS_S = 24 * 3600, /* a node is used again after that */
	WLBD_EVICTIONS_MAX = 256,          /* the newest of a run are read */
};

struct wlbd_past_eviction {
	const char *node;
	bool stood_still; /* the ranks hung; else they were slow, or computed wrong values */
	int64_t step;     /* -1: unknown */
	double age_s;
};

/* Returns how many of so many nodes may be excluded although they work: half, of eight or more a quarter. */
int wlbd_excluded_max(int node_count);

/* Sets evicted[i] for each of the node_count nodes, each of which has another name; `evictions` begins with the newest.
 * is_excluded[i], unless is_excluded is NULL: the node is excluded for another reason. At most wlbd_excluded_max nodes
 * are excluded for either reason: the nodes that were evicted last. Returns -1 if out of memory. */
int wlbd_evictions_mark(const struct wlbd_past_eviction *evictions, int count, const char *const *nodes, int node_count,
                        const bool *is_excluded, bool *evicted);

#endif

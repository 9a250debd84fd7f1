/* Whether the links of an excluded node are slower than those of other nodes, by what the ranks of
 * `wlb check-links --times` print. Pure. */
#ifndef COORDINATOR_WLB_RUN_CHECK_LINK_TIMES_H
#define COORDINATOR_WLB_RUN_CHECK_LINK_TIMES_H

#include <stdbool.h>

#include <jansson.h>

/* A node fails if its median pair takes more than so many times as long as the median pair of the other nodes, and so
 * much longer.
 *
 * The run goes on during the check. A pair without the checked node shares the processors and links of both nodes
 * with the run, a pair with the checked node those of one node. So the run slows the pairs without the checked node
 * more, if any. The least of several times of a pair is compared. A process may still wait some milliseconds for a busy
 * processor each time, hence the limit in seconds. A switch between the nodes does not make a pair 4 times slower; a
 * link that works at the next lower rate, 10 Gbit/s in place of 100, or one that loses packets, does. */
enum { WLB_LINK_SLOWER = 4 };
static const double WLB_LINK_SLOWER_S = 0.02;

/* Medians of the pairs that were measured. */
struct wlb_link_times {
	int bytes;         /* of a message in each direction */
	double own_s;      /* of the pairs of the node */
	const char *other; /* the other node of the pair with this time; one of the array of nodes */
	double others_s;   /* of the pairs without the node */
};

/* Reads the lines 'NODE exchanges BYTES bytes with NODE in X s, NODE in X s...'; `nodes` are the names of all nodes of
 * the check. Other lines, names of other nodes, and messages of another size than those of the node's own line are
 * ignored. Returns false where no pair of the node was measured, or none without it. */
bool wlb_run_read_link_times(const char *text, const json_t *nodes, const char *node, struct wlb_link_times *times);

bool wlb_run_link_is_slow(const struct wlb_link_times *times);

#endif

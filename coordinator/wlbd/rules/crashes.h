/*
 * What the deaths of ranks say about the nodes they ran on: pure logic, no I/O.
 *
 * A node on which ranks die again and again is left out, for as long as that is recent and sets it apart from the other
 * nodes of the run. A program that crashes anywhere, or at the same step on several nodes, is no node's fault.
 */
#ifndef COORDINATOR_WLBD_RULES_CRASHES_H
#define COORDINATOR_WLBD_RULES_CRASHES_H

#include <stdbool.h>
#include <stdint.h>

enum {
	/* A death counts half after this time. A device that is broken fails again within hours; what happens once a
	 * day happens anywhere. */
	WLBD_CRASH_HALF_LIFE_S = 4 * 3600,
	WLBD_CRASHES_MOST = 256, /* the newest of a run */
};

/* A rank whose death broke an attempt. */
struct wlbd_crash {
	const char *node;
	int64_t step; /* -1: unknown */
	double age_s;
};

struct wlbd_suspect {
	const char *node;
	int losses;     /* how often the node itself was lost */
	double weight;  /* out: losses, and deaths by their age */
	bool suspected; /* out */
};

/* Of two nodes or more at most a quarter is suspected, and always one may be: those with the most weight, if it is more
 * than one and a half deaths and three times that of the other nodes' mean. */
void wlbd_crashes_suspect(const struct wlbd_crash *crashes, int crash_count, struct wlbd_suspect *nodes,
                          int node_count);

/* The step at which ranks died on several nodes, of the newest such death; -1: there is none. */
int64_t wlbd_crashes_program_step(const struct wlbd_crash *crashes, int count);

#endif

/*
 * Marks the nodes that are suspected because ranks died on them: pure logic, no I/O.
 *
 * A node on which ranks die repeatedly is not used, for as long as the deaths are recent and more than those on the
 * other nodes of the run. Crashes on many nodes, or at the same step on several without progress between them, are the
 * program's fault.
 */
#ifndef COORDINATOR_WLBD_RULES_CRASHES_H
#define COORDINATOR_WLBD_RULES_CRASHES_H

#include <stdbool.h>
#include <stdint.h>

enum {
	/* A death counts half after this time. A broken device fails again within hours; what happens once a day can
	 * happen on any node. */
	WLBD_CRASH_HALF_LIFE_S = 4 * 3600,
	WLBD_CRASHES_MAX = 256, /* the newest of a run are read */
};

/* A rank whose death broke an attempt. */
struct wlbd_crash {
	const char *node;
	int64_t step; /* the last that was done, 0: none; -1: unknown */
	double age_s;
	bool in_row;            /* its attempt and all later ones ended without a new step */
	int64_t later_progress; /* attempts after it that made new steps */
};

struct wlbd_suspect {
	const char *node;
	int losses;     /* how often the run lost the node itself */
	double weight;  /* out: losses, and deaths by their age */
	bool suspected; /* out */
};

/* Marks the nodes with the most weight, if the weight is at least 1.5 deaths and more than three times the mean of the
 * other nodes. Of two to seven nodes one is marked, of eight or more at most a quarter, of equals the first. Each node
 * has another name. A single node is never marked. Returns -1 if out of memory. */
int wlbd_crashes_suspect(const struct wlbd_crash *crashes, int crash_count, struct wlbd_suspect *nodes, int node_count);

/* Looks at the newest attempts in a row that ended without a new step. Returns the step at which ranks died on several
 * nodes in them, by the newest such death; -1: there is none. */
int64_t wlbd_crashes_program_step(const struct wlbd_crash *crashes, int count);

#endif

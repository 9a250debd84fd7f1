/*
 * Which task of a step ended badly first, by srun's word: its stderr has a line for it,
 *
 *     srun: error: n3: task 5: Killed
 *     srun: error: n[1-2]: tasks 0-3: Exited with exit code 7
 *     srun: error: n1: tasks 0-1: Segmentation fault (core dumped)
 *
 * while its own exit code is the highest of all tasks, those that it ended itself included. Pure parser, no I/O.
 *
 * What tasks write to stderr comes the same way. A task that writes such a line itself is believed: it only misleads
 * the run of its own user.
 */
#ifndef COORDINATOR_WLB_RUN_FIRST_EXIT_H
#define COORDINATOR_WLB_RUN_FIRST_EXIT_H

#include <stdbool.h>
#include <stddef.h>

struct wlb_first_exit {
	bool known; /* else: the rest says nothing */
	int rank;   /* the first of those that the line names */
	char node[256];
	int signal;    /* 0: it ended by itself */
	int exit_code; /* 1 to 255; 128 + signal when it was killed */
};

/* All zero before the first byte. */
struct wlb_first_exit_scan {
	struct wlb_first_exit first;
	bool closed;  /* tasks that end from now on were ended by someone: nothing more is recognised */
	bool no_step; /* srun could not create its step, for a reason that passes: no task was started */
	char line[4096];
	size_t length; /* sizeof(line): too long to be one of srun's */
};

/* The next bytes of srun's stderr, cut anywhere. */
void wlb_first_exit_feed(struct wlb_first_exit_scan *scan, const char *bytes, size_t count);

#endif

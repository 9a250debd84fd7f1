/*
 * Whether the process of each rank runs, by what agents report of a trainer that reports nothing itself: its launcher
 * may start other ranks than Slurm's tasks. Pure: no I/O.
 */
#ifndef COORDINATOR_WLBD_DETECTION_RANK_PROCESSES_H
#define COORDINATOR_WLBD_DETECTION_RANK_PROCESSES_H

#include <stdint.h>

#include "coordinator/wlbd/detection/activities.h"
#include "coordinator/wlbd/detection/processes.h"

struct wlbd_rank_process {
	const char *node; /* NULL: nothing is known of the rank */
	int64_t reported_ms;
	enum wlbd_activity_process state;
};

struct wlbd_rank_processes {
	struct wlbd_rank_process *list; /* [count], by rank */
	int count;
};

/* Fills it from the reports of `count` nodes, whose names it refers to; it stays empty without memory. Of a
 * node the most ranks are counted that one reports: a rank that is not below this number times `count` is ignored, so
 * that no agent can have a reply list a million ranks. wlbd_rank_processes_free releases it. */
void wlbd_rank_processes_fill(struct wlbd_rank_processes *processes, const struct wlbd_processes_node *list, int count);
void wlbd_rank_processes_free(struct wlbd_rank_processes *processes);

/* Returns NULL where nothing is known of the rank. NULL is allowed. */
const struct wlbd_rank_process *wlbd_rank_processes_of(const struct wlbd_rank_processes *processes, int rank);

#endif

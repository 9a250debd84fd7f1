/*
 * Processes of ranks that cannot go on, as agents see them for any trainer, and what follows: verdicts that name them
 * while other ranks run. Pure: no I/O.
 *
 * A stopped or dead process is named after WLBD_PROCESSES_NAMED_MS, and confirmed after the run's `hang-after`. Where
 * all processes are stopped nobody is named: Slurm has suspended the job, or its user has. A launcher that has had no
 * rank for WLBD_LAUNCHER_WAITS_S is named, and never confirmed, so that nothing is done: it may still be starting.
 */
#ifndef COORDINATOR_WLBD_DETECTION_PROCESSES_H
#define COORDINATOR_WLBD_DETECTION_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/wlbd/detection/detection.h"

enum {
	WLBD_FAULTY_MAX = 8,         /* of a node */
	WLBD_RUNNING_SPANS_MAX = 16, /* likewise */
	WLBD_LAUNCHER_NAME_SIZE = 16,
	WLBD_PROCESSES_NAMED_MS = 3000,
	WLBD_PROCESSES_FRESH_MS = 3000, /* an agent reports each second: older reports do not count */
	WLBD_LAUNCHER_WAITS_S = 25,
};

enum wlbd_process_fault {
	WLBD_PROCESS_IS_STOPPED,
	WLBD_PROCESS_IS_DEAD,
	WLBD_LAUNCHER_WAITS,
	WLBD_PROCESS_FAULTS,
};

struct wlbd_faulty_process {
	int rank; /* as the launcher of the process has it, which may start more ranks than Slurm tasks */
	int pid;
	enum wlbd_process_fault fault;
	/* Of a launcher: its name, how long it has had no rank, and the nodes that it waits for (0: not known). */
	char launcher[WLBD_LAUNCHER_NAME_SIZE];
	int64_t for_s;
	int nodes;
};

struct wlbd_rank_span {
	int first, count;
};

/* What the newest report of a node says. */
struct wlbd_node_processes {
	int running; /* of the node's other ranks */
	int count;
	struct wlbd_faulty_process list[WLBD_FAULTY_MAX];
	int span_count; /* 0: it is not reported which ranks run */
	struct wlbd_rank_span spans[WLBD_RUNNING_SPANS_MAX];
};

struct wlbd_processes_node {
	const char *name;
	int64_t reported_ms;
	int index;                                   /* in the attempt's nodes; -1: none */
	const struct wlbd_node_processes *processes; /* NULL: all its ranks run */
};

/* Begins as {0}. */
struct wlbd_process_faults {
	int64_t since_ms[WLBD_PROCESS_FAULTS]; /* 0: it is not so */
	int found_count;                       /* verdicts so far */
	int count;
	struct wlbd_found_verdict list[WLBD_PROCESS_FAULTS]; /* that are open, or over since the last judgement */
};

/* Judges by what `count` nodes report, of an attempt with `nodes` nodes. Sets faults->list. */
void wlbd_process_faults_judge(struct wlbd_process_faults *faults, const struct wlbd_processes_node *list, int count,
                               int nodes, double hang_after_s, int64_t now_ms);

#endif

/*
 * The ranks of one training run, which do what a program of tests/bench/verdicts says, in real time: each writes into
 * the area of its node's page what a rank of wlb-worker writes there, so that the code of wlb-agent reports it.
 */
#ifndef TESTS_BENCH_COORDINATOR_RANKS_H
#define TESTS_BENCH_COORDINATOR_RANKS_H

#include <pthread.h>

#include "coordinator/client/node_page.h"
#include "tests/bench/verdicts/program.h"

/* A rank computes so much longer in the middle of a step, while the others come to wait for it. */
struct pause {
	int32_t rank; /* -1: none */
	double seconds;
	double began_s, ends_s; /* set by ranks_plan: when it computes, from the run's begin */
};

/* A step that has been planned, as the program computed it. */
struct planned {
	struct events *events; /* [ranks] */
	int32_t *event_count;  /* [ranks] */
	double *computed_s;    /* [ranks] */
	double *work;          /* [replicas] */
	struct pause pause;
	double begins_s, ends_s; /* from the run's begin */
};

/* How far a rank has come in the step that is shown, and in the calls of its communicators. */
struct progress {
	int32_t position; /* its event; -1: before the first */
	int computes;     /* in this step it has begun to compute */
	int blocked;      /* the slot of the call that its area shows as blocking it; -1: none */
	double blocked_s; /* since when */
	int group[SLOTS]; /* numbers in its area; -1: none */
	uint64_t entered[SLOTS], left[SLOTS], shown_left[SLOTS];
	double began_s[SLOTS], ended_s[SLOTS]; /* of the last call that it has left; of the run */
};

struct ranks {
	struct cluster cluster;
	struct program program;
	struct chance chance;
	double times;    /* the program's work */
	int64_t step;    /* that is shown, from 1; 0: none yet */
	double begins_s; /* of the run, of the monotonic clock */
	struct planned shown;
	struct planned next;
	struct progress *progress;    /* [ranks] */
	struct wlb_node_page **page;  /* [nodes] */
	struct wlb_rank_trace **area; /* [ranks] */
};

/* Steps take about step_s. Ends the program with a message where memory is out. */
void ranks_open(struct ranks *ranks, const struct wlb_verdict_layout *layout, double step_s, const char *attempt_id);

/* Plans the step after the one that is shown; *pause is a part of it. Takes a part of a second for thousands of ranks,
 * and may run beside ranks_advance. */
void ranks_plan(struct ranks *ranks, struct pause pause);

/* Shows the step that was planned: the ranks are at its begin. */
void ranks_show(struct ranks *ranks);

/* Moves the ranks of a node to where they are now. By one thread for each node; not beside ranks_show and
 * ranks_end_step. */
void ranks_advance(struct ranks *ranks, int32_t node);

/* All ranks end the step that is shown, and tell it. */
void ranks_end_step(struct ranks *ranks);

#endif

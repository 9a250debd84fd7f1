/*
 * Whether a run goes on, and on which nodes: pure logic, no I/O. The facts come in, the decision goes out.
 */
#ifndef COORDINATOR_WLBD_RULES_DECISION_H
#define COORDINATOR_WLBD_RULES_DECISION_H

#include <stdbool.h>
#include <stdint.h>

#include "libwlb/wlb.h"

enum {
	WLBD_WITHOUT_PROGRESS_MOST = 3, /* attempts in a row without one new step and without a lost node */
	WLBD_NODE_LOSSES_MOST = 1,      /* a node that was lost more often is left out */
	WLBD_EXIT_BAD_INPUT = 2,        /* exit codes of docs/api.md */
	WLBD_EXIT_ORDERED = 75,
	WLBD_EXIT_UNKNOWN = -1000,
};

struct wlbd_candidate_node {
	const char *name;
	bool down;      /* Slurm says so, or the job no longer has it */
	bool silent;    /* its slurmd does not answer */
	int losses;     /* how often this run lost it */
	bool suspected; /* ranks died on it again and again: crashes.h */
};

struct wlbd_decision_facts {
	const struct wlbd_candidate_node *nodes; /* the job's allocation, in Slurm's order */
	int node_count;
	int tasks_per_node;
	struct wlb_policy policy;
	int min_nodes;   /* 0: one is enough */
	int spares;      /* to hold back */
	int first_total; /* nodes the run had at its first attempt, spares included; 0: this is the first */
	int attempts_without_progress; /* in a row */
	int64_t program_step;          /* the program fails there on any node; -1: no such step is known */
	int previous_exit_code;        /* WLBD_EXIT_UNKNOWN: there was no previous attempt */
	bool judging;                  /* what became of the previous attempt is still being established */
};

enum wlbd_verb {
	WLBD_START,
	WLBD_WAIT,
	WLBD_STOP_FAILED,
	WLBD_STOP_OUT_OF_NODES,
};

struct wlbd_decision {
	enum wlbd_verb verb;
	int *use; /* START: indexes into the offer, use_count of them, then spare_count spares; freed by the caller */
	int use_count;
	int spare_count;
	struct wlb_layout layout;
	char reason[512];
};

/* 0, or -1 when memory is out. Free with wlbd_decision_free. */
int wlbd_decide(const struct wlbd_decision_facts *facts, struct wlbd_decision *decision);
void wlbd_decision_free(struct wlbd_decision *decision);

#endif

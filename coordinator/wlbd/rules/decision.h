/* Decides whether a run continues, and on which nodes: pure logic, no I/O. */
#ifndef COORDINATOR_WLBD_RULES_DECISION_H
#define COORDINATOR_WLBD_RULES_DECISION_H

#include <stdbool.h>
#include <stdint.h>

#include "libwlb/wlb.h"

enum {
	WLBD_WITHOUT_PROGRESS_MAX = 3, /* attempts in a row without one new step and without a lost node */
	WLBD_NODE_LOSSES_MAX = 1,      /* a node that the run lost more often has failed */
	WLBD_EXIT_BAD_INPUT = 2,       /* exit codes of docs/trainers.md */
	WLBD_EXIT_ORDERED = 75,
	WLBD_EXIT_SAVED = 85, /* asked to save and stop, and has */
	WLBD_EXIT_UNKNOWN = -1000,
};

/* When the launcher asks again where nothing but the next moment is waited for. */
#define WLBD_RETRY_SOON_S 0.2

/* Whether a process that ended with this code did so on purpose: it is not lost, and the others of its step end too. */
bool wlbd_exit_is_deliberate(int exit_code);

struct wlbd_candidate_node {
	const char *name;
	bool down;   /* in Slurm, or the job no longer has it */
	bool silent; /* its slurmd does not answer */

	/* Why it is excluded although it works, from the strongest reason to the weakest: what is known of several
	 * faults in this run, of one, and of other runs. It is used where the others are too few, or fit no layout. */
	const char *failed;  /* "was lost twice", or "failed again and again": crashes.h; NULL: neither */
	bool evicted;        /* an attempt was ended because of it: evictions.h */
	const char *avoided; /* "was lost in 2 runs": avoidance.h; NULL: it is not */

	char *leaf; /* the name of its switch; NULL: it is under none */
};

/* Whether an excluded node may be used again once it answers. */
bool wlbd_node_may_return(const struct wlbd_candidate_node *node);
/* Whether a node that works may be used again once it passes a check that the run makes of it. What is known from other
 * runs such a check does not end. */
bool wlbd_node_may_pass(const struct wlbd_candidate_node *node);

struct wlbd_decision_facts {
	const struct wlbd_candidate_node *nodes; /* the job's allocation; nodes of a switch are neighbours */
	int node_count;
	int tasks_per_node;
	struct wlb_policy policy;
	int min_nodes;   /* 0: one is enough */
	int spares;      /* nodes that are kept for later attempts */
	int first_total; /* nodes the run had at its first attempt, spares included; 0: this is the first */
	int attempts_without_progress; /* in a row */
	double since_end_s;            /* that the newest attempt has ended; HUGE_VAL: not known */
	double back_off_s; /* from the first attempt without progress to the next; four times as long from each further
	                      one */
	int64_t program_step;   /* after which the program fails on any node, 0: at its start; -1: none is known */
	int previous_exit_code; /* WLBD_EXIT_UNKNOWN: there was no previous attempt */
	bool has_worked;        /* an attempt of the run has saved a checkpoint, or lasted for long: its input was
	                           accepted before */
	bool judging;           /* the previous attempt is still to be judged */
};

enum wlbd_verb {
	WLBD_START,
	WLBD_WAIT,
	WLBD_STOP_FAILED,
	WLBD_STOP_OUT_OF_NODES,
};

struct wlbd_decision {
	enum wlbd_verb verb;
	int *use; /* START: indexes into facts.nodes: use_count to use, then spare_count spares */
	int use_count;
	int spare_count;
	struct wlb_layout layout;
	double retry_after_s; /* WAIT */
	char reason[512];
};

/* Returns -1 if out of memory. Free with wlbd_decision_free. */
int wlbd_decide(const struct wlbd_decision_facts *facts, struct wlbd_decision *decision);
void wlbd_decision_free(struct wlbd_decision *decision);

#endif

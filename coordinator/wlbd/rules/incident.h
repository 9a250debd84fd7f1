/*
 * What a set of symptoms means: pure logic, no I/O.
 *
 * The first sign of trouble opens an incident of the attempt. For a moment more signs are gathered: the process
 * whose death is noticed first need not be the one that died first, a lost node explains everything on it, and a
 * launcher that was killed takes its ranks along. The rule is that of wlb_attempt_cause in the schema, which decides in
 * the end.
 */
#ifndef COORDINATOR_WLBD_RULES_INCIDENT_H
#define COORDINATOR_WLBD_RULES_INCIDENT_H

#include <stdbool.h>
#include <stdint.h>

enum {
	WLBD_GATHER_MS = 300,
	WLBD_FOLLOW_MS = 2000, /* a rank that Slurm ended this long before its launcher's end was noticed followed it */
	WLBD_SAME_MOMENT_MS = 50, /* exits that are told within this time may have happened in any order */
	WLBD_ALIVE_MS = 500,      /* a node with a sign of life this long after a rank's end was alive at that end */
	WLBD_SYMPTOMS_MOST = 1024,
	WLBD_CONSEQUENCES_MOST = 16, /* ranks that followed: more of them tell nothing more */
	WLBD_LAUNCHER = -1,          /* as a rank: `wlb run` */
};

enum wlbd_symptom_kind {
	WLBD_CLOSED,    /* the connection of a node's reporter ended without a goodbye */
	WLBD_SILENT,    /* it is open, and nothing comes */
	WLBD_RANK_GONE, /* told by the reporter of its node, or by srun */
};

enum wlbd_node_state {
	WLBD_NODE_ASKED, /* its slurmd is being probed */
	WLBD_NODE_ALIVE,
	WLBD_NODE_LOST,
};

struct wlbd_symptom {
	enum wlbd_symptom_kind kind;
	char node[256];
	int rank; /* WLBD_LAUNCHER: of the launcher */
	int64_t step;
	int64_t at_ms;
	int64_t alive_ms; /* the last sign of life of its node; 0: unknown */
	int exit_code;    /* of RANK_GONE, 128 + signal when it was killed; 0: not told */
	enum wlbd_node_state node_state;
	bool withdrawn; /* it came back, or said goodbye after all */
	bool first;     /* srun saw it end before all others */
};

struct wlbd_incident {
	struct wlbd_symptom *symptoms; /* in order of arrival */
	int count;
	int64_t opened_ms;
	bool over;             /* the attempt's step has ended, by the word of the launcher */
	int exit_code;         /* of the step, when over */
	int srun_signal;       /* that killed srun, when over; 0: none did */
	int64_t deliberate_ms; /* when a rank was told to have ended by order or for bad input; 0: none was */
	bool told_first;       /* the launcher said which rank ended first */
	bool settled;          /* faults were found once: from now on only lost nodes are news */
};

/* The symptom to fill in: the one of the same kind, node and rank, or a new one; NULL when there are too many. */
struct wlbd_symptom *wlbd_incident_add(struct wlbd_incident *incident, enum wlbd_symptom_kind kind, const char *node,
                                       int rank, int64_t now_ms);
void wlbd_incident_clear(struct wlbd_incident *incident); /* forgets the symptoms, keeps over and settled */

enum wlbd_judgement {
	WLBD_JUDGE_LATER,   /* not enough is known yet */
	WLBD_JUDGE_NOTHING, /* no fault */
	WLBD_JUDGE_FAULTS,
};

enum wlbd_found { WLBD_FOUND_NODE, WLBD_FOUND_RANK, WLBD_FOUND_LAUNCHER };

struct wlbd_finding {
	enum wlbd_found what;
	const struct wlbd_symptom *symptom;
};

/* findings[0] is the cause, the others followed; room for WLBD_SYMPTOMS_MOST. grace_ms: how long a process on a
 * node that is alive has to come back. */
enum wlbd_judgement wlbd_incident_judge(const struct wlbd_incident *incident, int64_t now_ms, int64_t grace_ms,
                                        struct wlbd_finding *findings, int *count);

#endif

/*
 * Finds the cause of a set of symptoms: pure logic, no I/O.
 *
 * The first symptom opens an incident of the attempt. For WLBD_GATHER_MS more symptoms are gathered: the process whose
 * death is noticed first need not be the one that died first, a lost node explains the end of everything on it, and a
 * killed launcher the end of its ranks. How strongly a rank's end speaks is common/rank_end.h's rule. It says whether
 * and why the processes are to end now; which of the stored faults is the cause is cause.h's answer, which counts.
 */
#ifndef COORDINATOR_WLBD_RULES_INCIDENT_H
#define COORDINATOR_WLBD_RULES_INCIDENT_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/wlbd/rules/attempt_state.h"

enum {
	WLBD_GATHER_MS = 300,
	WLBD_SAME_MOMENT_MS = 50, /* exits that are reported within this time may have happened in any order */
	WLBD_CUT_OFF_GRACE_MS =
		8000, /* a client that was not answered pauses for up to 5 s, and its request may take 2 s */
	WLBD_JOB_ANSWER_MS = 5000, /* Slurm has this long to say whether the job was requeued */
	WLBD_SYMPTOMS_MAX = 1024,
	WLBD_CONSEQUENCES_MAX = 16, /* ranks that ended because of the cause; more are not recorded */
	WLBD_LAUNCHER = -1,         /* as a rank: `wlb run` */
};

enum wlbd_symptom_kind {
	WLBD_CLOSED,    /* the connection of a node's reporter ended without a goodbye */
	WLBD_SILENT,    /* the connection is open, and no report arrives */
	WLBD_RANK_GONE, /* the reporter of its node, or srun, reports it */
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
	int exit_code;    /* of RANK_GONE, 128 + signal where it was killed; 0: not known */
	enum wlbd_node_state node_state;
	bool cut_off;   /* it could not report for some seconds before, so that it may pause before it connects again */
	bool withdrawn; /* the process connected again, or has sent its last report */
	bool first;     /* srun saw it end before all other ranks */
	bool after_end; /* SILENT: its node lived when the tasks there had ended, and so did not end the attempt */
};

/* Why a step ended that no rank has broken. */
struct wlbd_step_break {
	char node[256]; /* "": of no node */
	char why[512];  /* "": there is none */
	double time_s;  /* since 1970, by the launcher's clock */
	bool is_certain;
	bool recorded;
};

struct wlbd_incident {
	struct wlbd_symptom *symptoms; /* in order of arrival */
	int count;
	int64_t opened_ms;
	struct wlbd_attempt_life life;         /* of the attempt */
	int64_t deliberate_ms;                 /* when a rank ended deliberately, decision.h; 0: none did */
	bool first_exit_known;                 /* the launcher reported which rank ended first */
	struct wlbd_step_break launch_failure; /* of a node, after which srun ended the other tasks */
	struct wlbd_step_break slurm_end;      /* Slurm itself ended the tasks: no rank was lost */
	int64_t slurm_end_ms;                  /* when the launcher said so; 0: it has not */
	bool has_slurm_ended;                  /* that is how the step ended */
	bool is_job_asked; /* Slurm is asked whether the job was requeued, which ends its ranks and its launcher */
	bool settled;      /* the cause was found: from now on only lost nodes are looked for */
	bool is_node_lost; /* and is a lost node */
};

/* What a launcher reports of such a reason. */
struct wlbd_reported_reason {
	const char *node; /* points into the body of the request, as `why`; NULL: of no node */
	const char *why;  /* NULL: there is none */
	double time_s;    /* since 1970, by the launcher's clock */
	bool is_certain;  /* no rank can be the reason */
};

/* What ended a step, as its launcher reports it: the rank that srun saw end first. */
struct wlbd_first_exit {
	const char *node; /* points into the body of the request; NULL: srun saw no such rank */
	int64_t rank;
	int64_t exit_code;                          /* 128 + signal where it was killed */
	int64_t srun_signal;                        /* that killed srun itself; 0: none did */
	struct wlbd_reported_reason launch_failure; /* a node did not launch its tasks, in Slurm's words */
	struct wlbd_reported_reason slurm_end;      /* Slurm itself ended the tasks */
};

/* Returns the symptom of this kind, node and rank, which is made where there is none; NULL if out of memory, or where
 * there are WLBD_SYMPTOMS_MAX. The caller sets the other fields. */
struct wlbd_symptom *wlbd_incident_add(struct wlbd_incident *incident, enum wlbd_symptom_kind kind, const char *node,
                                       int rank, int64_t now_ms);
void wlbd_incident_clear(struct wlbd_incident *incident); /* frees the symptoms; keeps the rest */

enum wlbd_judgement {
	WLBD_JUDGE_LATER,   /* judge again: not enough is known yet */
	WLBD_JUDGE_NOTHING, /* no fault */
	WLBD_JUDGE_FAULTS,
};

enum wlbd_found { WLBD_FOUND_NODE, WLBD_FOUND_RANK, WLBD_FOUND_LAUNCHER };

struct wlbd_finding {
	enum wlbd_found what;
	const struct wlbd_symptom *symptom;
};

/* findings[0] is the cause, unless its node was lost after the end; nodes that were come last, and the others are
 * consequences of the cause, or nodes that were lost after it. `findings` has WLBD_SYMPTOMS_MAX +
 * WLBD_CONSEQUENCES_MAX elements. A process on a live node has grace_ms to connect again, and one that was cut off at
 * least WLBD_CUT_OFF_GRACE_MS. */
enum wlbd_judgement wlbd_incident_judge(const struct wlbd_incident *incident, int64_t now_ms, int64_t grace_ms,
                                        struct wlbd_finding *findings, int *count);

#endif

/*
 * What a fault says for itself as the cause of the end of its attempt: pure logic, no I/O.
 *
 * Faults of an attempt become known in any order, from agents, launchers, Slurm and late records, in several starts of
 * wlbd. So each is judged alone, from its kind and what is known of it, and stored with the result in the columns of
 * `faults` that wlbd_cause_judge names. wlb_attempt_cause of the schema only compares these columns: the cause is the
 * strongest fault that no other one explains, and the earliest of several. Exit codes, margins of time and sentences
 * are here and in common/rank_end.h alone.
 */
#ifndef COORDINATOR_WLBD_RULES_CAUSE_H
#define COORDINATOR_WLBD_RULES_CAUSE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "common/fault_kinds.h"

enum {
	WLBD_FOLLOW_MS = 2000,      /* a rank that Slurm ended, or that wrote to a process that had ended, this long
	                               before the end of a killed process was noticed ended because of that */
	WLBD_ALIVE_MS = 500,        /* a node that showed life this long after a rank's end was alive at that end */
	WLBD_SCRIPT_LATE_MS = 3000, /* the end of a job is recorded up to this long after its script was killed; its
	                               launcher's connection closes before */
	WLBD_SENTENCE_SIZE = 4096,
};

/* The strongest last. The numbers are stored: what changes them also changes the rows that are there (sql/tables). */
enum wlbd_cause_strength {
	WLBD_CAUSE_STEP,        /* the step failed: any other reason that is given for the end says more */
	WLBD_CAUSE_GONE,        /* a rank is not there, or what a client reports */
	WLBD_CAUSE_KILLED,      /* a launcher, script, srun or slurmstepd was killed */
	WLBD_CAUSE_NODE,        /* a node is lost */
	WLBD_CAUSE_ENDED,       /* a rank ended with this exit code */
	WLBD_CAUSE_FIRST_ENDED, /* the same, before all other ranks */
	WLBD_CAUSE_EVICTED,     /* wlbd ended the attempt because of it */
};

struct wlbd_fault {
	enum wlb_fault_kind kind;
	int rank;             /* -1: of none, or not known */
	const char *node;     /* NULL: of none, or not known */
	const char *detail;   /* what is known, for people */
	const char *eviction; /* why wlbd ends the attempt because of it, in a few words; NULL: it does not */
	int exit_code;        /* RANK_LOST: 128 + signal where it was killed; 0: not known */
	bool is_first;        /* RANK_LOST: that rank ended before all others, as far as is known */
	bool is_after_end;    /* NODE_LOST: its tasks had ended */
	bool is_step_broken;  /* STEP_FAILED: its slurmstepd or its srun died, or a node did not launch its tasks */
	double since_s;       /* since 1970; NODE_LOST: when the node was last known to be alive; LAUNCHER_LOST,
	                         SCRIPT_LOST, a broken step: when the process was killed; 0: not known */
};

/* How long before the end of a killed process was noticed a rank of this exit code may have ended because of it: 0
 * unless Slurm may have ended the rank, it wrote to a process that had ended, or its exit code is not known, which is
 * 0. */
int wlbd_cause_follow_ms(int exit_code);

/* Writes what happened as one line, cut where `size` is less: the reason of an attempt of which it is the cause. */
void wlbd_cause_sentence(const struct wlbd_fault *fault, char *text, size_t size);

/* Returns what is stored with the fault, or NULL if out of memory; what does not apply is absent:
 *   sentence   as wlbd_cause_sentence writes it
 *   strength   enum wlbd_cause_strength; absent: it is never the cause
 *   late_s     it may have happened so long before it was detected
 *   follow_s   the end of a process that was killed at most so long after it was detected explains it
 *   killed_at  when the process that was killed ended, whose end explains those of ranks; null: not known
 *   lost_from  what is detected from then on may follow from the loss of this node; null: since ever
 * Times are in seconds since 1970. */
json_t *wlbd_cause_judge(const struct wlbd_fault *fault);

#endif

/*
 * What becomes of a run whose job is over and whose launcher has not said how the run ended: pure logic, no I/O.
 *
 * Slurm's final state is believed. A job whose launcher or script was killed is queued again, where it was submitted
 * so; one that Slurm or its user ended (scancel, time limit, preemption, no memory) is not.
 */
#ifndef COORDINATOR_WLBD_RULES_JOB_END_H
#define COORDINATOR_WLBD_RULES_JOB_END_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/slurm/slurm_api.h"

enum {
	WLBD_REQUEUES_MOST = 3, /* of a run */
	WLBD_LATE_END_S = 10, /* after the job's end, wlbd and its database being there: for what is still delivered */
	WLBD_LATE_RECORDS_S = 20,  /* the same, when nothing at all was heard of the end */
	WLBD_END_TOLD_WITHIN_S = 5 /* a launcher that ends tells it in less time than this before its job's end */
};

struct wlbd_job_end_facts {
	const struct wlb_slurm_job *job; /* NULL: Slurm no longer knows it */
	uint32_t job_id;
	int64_t ended_ago_s;
	int64_t recording_s; /* how long wlbd and its database have been there */
	bool may_requeue;    /* the job is its owner's, and was submitted with --requeue */
	bool has_attempt;
	bool launched;      /* `wlb run` was told to start that attempt */
	bool complete;      /* it is */
	bool told;          /* its launcher said how it ended */
	bool goodbye;       /* its launcher said goodbye */
	bool launcher_lost; /* it is known to have been killed */
};

enum wlbd_job_end_verb {
	WLBD_JOB_END_WAIT, /* look again */
	WLBD_JOB_END_CLOSE,
	WLBD_JOB_END_REQUEUE,
};

struct wlbd_job_end {
	enum wlbd_job_end_verb verb;
	const char *state;  /* CLOSE: of the run */
	bool script_lost;   /* a fault to record: its script was killed */
	bool launcher_lost; /* the same: its launcher was killed, nobody knows when */
	char reason[256];   /* of CLOSE and REQUEUE */
};

void wlbd_job_end_judge(const struct wlbd_job_end_facts *facts, struct wlbd_job_end *end);

#endif

/*
 * Decides about a run whose job has ended and whose launcher has not reported how the run ended: pure logic, no I/O.
 *
 * Slurm's final state counts. A job whose launcher or script was killed is requeued if it was submitted with --requeue.
 * A job that Slurm or its user ended (scancel, time limit, preemption, out of memory) is not requeued.
 *
 * A launcher that did not report its end counts as killed only where the report could have been stored. The time for
 * which that holds (wlbd->recording_since_ms) begins again whenever the database is connected, answers that it can
 * store nothing, or accepts no connection for records.
 */
#ifndef COORDINATOR_WLBD_RULES_JOB_END_H
#define COORDINATOR_WLBD_RULES_JOB_END_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/slurm/slurm_api.h"

enum {
	WLBD_REQUEUES_MAX = 3, /* of a run */
	/* After the job's end, and while wlbd and its database answer, late records are waited for: */
	WLBD_LATE_KILLED_S = 3,        /* of ranks alone, where the launcher or the script was killed */
	WLBD_LATE_END_S = 10,          /* where something else is known of the end */
	WLBD_LATE_RECORDS_S = 20,      /* where nothing is */
	WLBD_END_REPORTED_WITHIN_S = 5 /* a launcher reports its end less than this before its job's end */
};

struct wlbd_job_end_facts {
	const struct wlb_slurm_job *job; /* NULL: Slurm no longer knows it */
	uint32_t job_id;
	int64_t ended_ago_s;
	int64_t recording_s; /* for how long wlbd has answered, and its database stored what it was sent */
	bool may_requeue;    /* a batch job, submitted with --requeue */
	bool has_attempt;
	bool launched;      /* `wlb run` was answered to start that attempt */
	bool complete;      /* the attempt is */
	bool end_reported;  /* the launcher reported the attempt's end */
	bool goodbye;       /* its launcher sent its last report */
	bool launcher_lost; /* the launcher is known to have been killed */
	bool not_reached;   /* the script began again, and has not come to this run's `wlb run` */
};

enum wlbd_job_end_verb {
	WLBD_JOB_END_WAIT,  /* evaluate again at the next poll */
	WLBD_JOB_END_CLOSE, /* the run ends */
	WLBD_JOB_END_REQUEUE,
};

struct wlbd_job_end {
	enum wlbd_job_end_verb verb;
	const char *state;  /* CLOSE: of the run */
	bool script_lost;   /* a fault to record: the job's script was killed */
	bool launcher_lost; /* a fault to record: the launcher was killed, it is not known when */
	char reason[256];   /* of CLOSE and REQUEUE */
};

/* Never fails. */
void wlbd_job_end_judge(const struct wlbd_job_end_facts *facts, struct wlbd_job_end *end);

#endif

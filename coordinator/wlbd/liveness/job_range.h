/*
 * On how many nodes a job that is queued again may start, since some of its nodes are lost: pure logic, no I/O. The
 * order to Slurm has wlbd's authority, and the nodes of an attempt may be what a client says. So a job is never given
 * more than it asks for itself.
 */
#ifndef COORDINATOR_WLBD_LIVENESS_JOB_RANGE_H
#define COORDINATOR_WLBD_LIVENESS_JOB_RANGE_H

#include <stdbool.h>

#include "coordinator/slurm/slurm_api.h"

struct wlbd_job_range_facts {
	int total_nodes; /* of the last attempt, spares included */
	int lost_nodes;  /* of these */
	int min_nodes;   /* of the run's policy */
	int resized_to;  /* the least nodes that the job was given since the last attempt; 0: it was not resized */
};

struct wlbd_job_range {
	uint32_t least, most;
};

/* Returns false where the job, which is pending, needs no other range than it has. */
bool wlbd_job_range_find(const struct wlb_slurm_job *job, const struct wlbd_job_range_facts *facts,
                         struct wlbd_job_range *range);

#endif

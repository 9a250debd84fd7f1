/*
 * On how many nodes a job that is requeued may start, since some of its nodes are lost: pure logic, no I/O. The
 * order to Slurm has wlbd's authority, and the nodes of an attempt may be what a client says: so a job never has to
 * have more nodes than it had, and how many it gets at most stays as its user requested.
 */
#ifndef COORDINATOR_WLBD_RULES_JOB_RANGE_H
#define COORDINATOR_WLBD_RULES_JOB_RANGE_H

#include "coordinator/slurm/slurm_api.h"

struct wlbd_job_range_facts {
	int total_nodes; /* of the last attempt, spares included */
	int lost_nodes;  /* of these */
	int min_nodes;   /* of the run's policy */
	int resized_to;  /* the least nodes that the job was given since the last attempt; 0: it was not resized */
};

/* Returns the least nodes that the job, which is pending, is to start on; 0 where it needs no change. */
uint32_t wlbd_job_least_nodes(const struct wlb_slurm_job *job, const struct wlbd_job_range_facts *facts);

#endif

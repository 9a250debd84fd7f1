/* The body of a report, and whether its nodes and ranks can be those of its attempt. Pure: no I/O. */
#ifndef COORDINATOR_WLBD_API_REPORTS_REPORT_READ_H
#define COORDINATOR_WLBD_API_REPORTS_REPORT_READ_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "coordinator/wlbd/attempts/attempt_nodes.h"
#include "coordinator/wlbd/rules/incident.h"
#include "libwlb/wlb.h"

/* Texts and arrays point into the body; an array that is absent is NULL. */
struct wlbd_report {
	const char *attempt_id;
	const char *node;
	bool launcher; /* from `wlb run`; else from a process that reports for all ranks of the node */
	int64_t rank;  /* WLBD_LAUNCHER for the launcher */
	int64_t step;
	const json_t *ranks;                   /* of the node */
	const json_t *lost_ranks;              /* {"rank", "time"}: vanished, it is not known how */
	const json_t *exits;                   /* {"rank", "time", "code"}: ended with this exit code */
	const json_t *activities;              /* what each rank does: activity_read.h */
	const json_t *steps;                   /* that ranks have ended: step_read.h */
	const json_t *calls;                   /* with their times: call_read.h */
	const json_t *processes;               /* of ranks: processes_read.h; NULL: all run */
	const json_t *faulty;                  /* of these, those that cannot go on, each with its "task" */
	int64_t lost_steps;                    /* that ranks have ended and the node could not report */
	const char *step_id;                   /* of the launcher; NULL: not known yet */
	struct wlbd_reported_reason slurm_end; /* of the launcher */
	bool stepd_gone;                       /* the slurmstepd of the step on that node is dead */
	bool goodbye;
	bool agent;
	int64_t own_nodes; /* of a step that srun has started with the option, and which is only recorded; 0: another */
};

/* Returns -1 with the field that is wrong. An array has at most WLBD_NODE_RANKS_MAX entries. */
int wlbd_report_read(const json_t *body, struct wlbd_report *report, struct wlb_error *error);

/* Returns -1 where the report has a node or a rank that is not the attempt's, or more ranks than the attempt has there.
 */
int wlbd_report_belongs(const struct wlbd_report *report, const struct wlbd_attempt_nodes *nodes,
                        struct wlb_error *error);

#endif

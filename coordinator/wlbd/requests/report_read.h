/* The body of a report, and whether what it says can be of the attempt that it names. Pure: no I/O. */
#ifndef COORDINATOR_WLBD_REQUESTS_REPORT_READ_H
#define COORDINATOR_WLBD_REQUESTS_REPORT_READ_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "coordinator/wlbd/liveness/attempt_nodes.h"
#include "libwlb/wlb.h"

/* Texts and arrays point into the body; an array that is absent is NULL. */
struct wlbd_report {
	const char *attempt_id;
	const char *node;
	bool launcher; /* `wlb run`; else a process for all ranks of the node */
	int64_t rank;  /* WLBD_LAUNCHER for the launcher */
	int64_t step;
	const json_t *ranks;      /* of the node */
	const json_t *lost_ranks; /* {"rank", "time"}: vanished, nobody knows how */
	const json_t *exits;      /* {"rank", "time", "code"}: ended, with this exit code */
	const char *step_id;      /* of the launcher; NULL: not known yet */
	bool stepd_gone;          /* the slurmstepd of the step on that node is dead */
	bool goodbye;
	bool agent;
};

/* -1 where the body breaks a rule of its own. No array has more entries than a node has ranks. */
int wlbd_report_read(const json_t *body, struct wlbd_report *report, struct wlb_error *error);

/* -1 where the report speaks of a node, a rank, or more ranks than the attempt has there. */
int wlbd_report_belongs(const struct wlbd_report *report, const struct wlbd_attempt_nodes *nodes,
                        struct wlb_error *error);

#endif

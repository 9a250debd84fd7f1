/* What wlbd has counted since it was started. Only the event loop's thread counts. */
#ifndef COORDINATOR_WLBD_COUNTERS_H
#define COORDINATOR_WLBD_COUNTERS_H

#include <stdint.h>

#include "common/fault_kinds.h"

struct wlbd_counters {
	uint64_t requests[6]; /* by the first digit of the status */
	uint64_t records_stored;
	uint64_t reports;
	uint64_t rank_steps;      /* that ranks have ended, in reports */
	uint64_t rank_steps_lost; /* that their nodes could not report */
	uint64_t attempts_started;
	uint64_t stacks_asked;                 /* gatherings of an attempt */
	uint64_t stacks_stored;                /* what nodes have sent for them */
	uint64_t faults[WLB_FAULT_KIND_COUNT]; /* losses alone */
	uint64_t evictions;                    /* attempts that wlbd ended because of a verdict */
	uint64_t statements_dropped;           /* of the outbox, which could not store them */
	uint64_t database_losses;              /* connections lost or not made */
	double request_seconds;                /* from the first line of a request to its reply, summed */
};

#endif

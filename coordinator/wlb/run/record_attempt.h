/* The record of an attempt that began without the coordinator. */
#ifndef COORDINATOR_WLB_RUN_RECORD_ATTEMPT_H
#define COORDINATOR_WLB_RUN_RECORD_ATTEMPT_H

#include "coordinator/client/reporter.h"
#include "coordinator/wlb/run/state.h"

/* Records the layout of an attempt that is planned, and the node of each rank. A coordinator that decided on the
 * attempt itself ignores it, and rank 0 of wlb-worker records more (docs/api.md); other trainers record nothing. */
void wlb_run_record_attempt(struct wlb_reporter *reporter, const struct wlb_attempt *attempt, uint32_t restart_count);

#endif

/* Delivery of the records in the spool folder: the records of this run are delivered before the coordinator decides on
 * them and, for a limited time, at the end; the records of other runs are delivered during the run. */
#ifndef COORDINATOR_WLB_RUN_STATE_DELIVER_RECORDS_H
#define COORDINATOR_WLB_RUN_STATE_DELIVER_RECORDS_H

#include <stdint.h>

#include "coordinator/wlb/run/state/state.h"
#include "libwlb/wlb.h"

/* Delivers this run's records, for at most limit_ms, and not at all if the coordinator does not answer; returns how
 * many are left. */
int64_t wlb_run_deliver(struct wlb_run *run, int limit_ms, struct wlb_error *error);
/* Starts the delivery of other runs' records, in a process that ends with this one. */
void wlb_run_deliver_others(const struct wlb_run *run);
/* Delivers this run's records until run->end_until_ms; prints how many are left and how many were refused. */
void wlb_run_deliver_last(struct wlb_run *run);

#endif

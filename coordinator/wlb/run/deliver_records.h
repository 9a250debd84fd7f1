/* Records that wait in the spool folder: this run's are delivered where the coordinator decides on them and, for a
 * moment, at the end; all others beside the run. */
#ifndef COORDINATOR_WLB_RUN_DELIVER_RECORDS_H
#define COORDINATOR_WLB_RUN_DELIVER_RECORDS_H

#include <stdint.h>

#include "coordinator/wlb/run/state.h"
#include "libwlb/wlb.h"

/* This run's records, for at most so long, and not at all where nobody answers; how many are left. */
int64_t wlb_run_deliver(struct wlb_run *run, int limit_ms, struct wlb_error *error);
/* Starts the delivery of what other runs left, in a process that ends with us. */
void wlb_run_deliver_others(const struct wlb_run *run);
/* This run's records until run->end_until_ms; says what is left, and what was refused. */
void wlb_run_deliver_last(struct wlb_run *run);

#endif

/* The calibration of nodes without GPUs that an attempt is planned with. */
#ifndef COORDINATOR_WLB_RUN_PLAN_CPU_CALIBRATION_H
#define COORDINATOR_WLB_RUN_PLAN_CPU_CALIBRATION_H

#include <jansson.h>

#include "coordinator/wlb/run/state/state.h"

/* Asks the coordinator, for `timeout_ms` in all, for the calibrations of this node's type and of the types by which it
 * knows the attempt's other nodes. Returns the reply of the slowest type, with the memory of the type that has least
 * and, where there are several types, their number as "types". The caller releases it; NULL where nothing was measured
 * or the coordinator does not answer. */
json_t *wlb_run_ask_cpu_calibration(const struct wlb_run *run, const struct wlb_attempt *attempt, int timeout_ms);

#endif

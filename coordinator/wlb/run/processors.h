/* The calibration of nodes without GPUs that an attempt is planned with. */
#ifndef COORDINATOR_WLB_RUN_PROCESSORS_H
#define COORDINATOR_WLB_RUN_PROCESSORS_H

#include <jansson.h>

#include "coordinator/wlb/run/state.h"

/* Asks the coordinator for the calibrations of this node's type and of the types that it knows the attempt's other
 * nodes by, for `timeout_ms` in all, and returns the reply of the slowest, with the memory of the one that has least
 * and, where there are several, "types", their number. The caller releases it; NULL where nothing was measured or the
 * coordinator does not answer. */
json_t *wlb_run_ask_processors(const struct wlb_run *run, const struct wlb_attempt *attempt, int timeout_ms);

#endif

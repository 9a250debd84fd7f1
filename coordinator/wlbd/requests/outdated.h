/* Programs of an older WLB, which do not ask for proofs, are served, and their users are asked to upgrade. */
#ifndef COORDINATOR_WLBD_REQUESTS_OUTDATED_H
#define COORDINATOR_WLBD_REQUESTS_OUTDATED_H

#include "coordinator/wlbd/http/call.h"
#include "coordinator/wlbd/liveness/attempts.h"

/* If such a program made the call: records an event of the run and logs a line, once for each run. */
void wlbd_outdated_record(const struct wlbd_call *call, struct wlbd_attempt *attempt);

/* If such a program made the call: adds that to the reason of a decision, which launchers print. */
void wlbd_outdated_add_to_reason(const struct wlbd_call *call, json_t *decision);

#endif

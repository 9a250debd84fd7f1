/* Programs of a WLB that does not ask for proofs go on being served, and are said to need an upgrade. */
#ifndef COORDINATOR_WLBD_REQUESTS_OUTDATED_H
#define COORDINATOR_WLBD_REQUESTS_OUTDATED_H

#include "coordinator/wlbd/http/call.h"
#include "coordinator/wlbd/liveness/attempts.h"

/* When the call is of such a program: an event of the run and a line of the log, once for each run. */
void wlbd_outdated_note(const struct wlbd_call *call, struct wlbd_attempt *attempt);

/* Adds it to the reason of a decision, which launchers print. */
void wlbd_outdated_tell(const struct wlbd_call *call, json_t *decision);

#endif

/* From the attempt_id of a request to the live attempt, which may have to be created: wlbd was away when it began. */
#ifndef COORDINATOR_WLBD_REQUESTS_FIND_ATTEMPT_H
#define COORDINATOR_WLBD_REQUESTS_FIND_ATTEMPT_H

#include <stdint.h>

#include "coordinator/wlbd/http/call.h"
#include "coordinator/wlbd/liveness/attempts.h"
#include "coordinator/wlbd/slurm/slurm_ask.h"

struct wlbd_resolutions;

/* Calls `then` with the attempt, which the caller may act on and which belongs to the run of the path; or answers
 * 400, 403, 503 itself. Requests for the same attempt wait for one answer. */
void wlbd_resolve(struct wlbd_call *call, const char *attempt_id,
                  void (*then)(struct wlbd_call *call, struct wlbd_attempt *attempt));

struct wlbd_resolutions *wlbd_resolutions_new(void);
void wlbd_resolutions_free(struct wlbd_resolutions *resolutions);

/* Takes the open attempts from PostgreSQL into memory, when wlbd has just started. */
void wlbd_resolve_reload(struct wlbd *wlbd);

#endif

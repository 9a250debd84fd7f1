/* The attempt of a request, from its attempt_id. It may not be in memory, or not in the database: wlbd did not run when
 * it began. */
#ifndef COORDINATOR_WLBD_API_FIND_ATTEMPT_H
#define COORDINATOR_WLBD_API_FIND_ATTEMPT_H

#include <stdint.h>

#include "coordinator/wlbd/attempts/attempts.h"
#include "coordinator/wlbd/http/request.h"
#include "coordinator/wlbd/slurm/slurm_requests.h"

struct wlbd_attempt_searches;

/* Calls `then` with the attempt, which belongs to the run of the path and on which the client may act; or answers 400,
 * 403 or 503. Requests for one attempt share one search. An attempt of a run that is over is valid only until `then`
 * returns. */
void wlbd_find_attempt(struct wlbd_request *request, const char *attempt_id,
                       void (*then)(struct wlbd_request *request, struct wlbd_attempt *attempt));

/* The same for what a process of the attempt tells of itself: answers 409 where the run is over and the attempt is not
 * in memory any more. */
void wlbd_find_live_attempt(struct wlbd_request *request, const char *attempt_id,
                            void (*then)(struct wlbd_request *request, struct wlbd_attempt *attempt));

struct wlbd_attempt_searches *wlbd_attempt_searches_new(void);
void wlbd_attempt_searches_free(struct wlbd_attempt_searches *searches);

/* Loads the open attempts from PostgreSQL into memory, after wlbd was started. Where a statement fails, it is tried
 * again while the connection is there; with a new connection this is called again. */
void wlbd_attempts_reload(struct wlbd *wlbd);

#endif

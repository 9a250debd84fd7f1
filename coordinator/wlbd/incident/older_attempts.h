/* Bounds how many attempts of a run are in memory, as wlb_attempt_ensure of the schema bounds how many have not ended.
 */
#ifndef COORDINATOR_WLBD_INCIDENT_OLDER_ATTEMPTS_H
#define COORDINATOR_WLBD_INCIDENT_OLDER_ATTEMPTS_H

#include "coordinator/wlbd/attempts/attempts.h"

enum { WLBD_RUN_ATTEMPTS_MOST = 64 };

/* Called after `added` was put into memory. Ends the attempts of its run beyond the newest WLBD_RUN_ATTEMPTS_MOST,
 * which have ended in the database, and removes each of them of which nothing is under way. `added` stays. */
void wlbd_older_attempts_end(struct wlbd *wlbd, const struct wlbd_attempt *added);

#endif

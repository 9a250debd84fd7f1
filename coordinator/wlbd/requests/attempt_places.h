/* The nodes and tasks that an attempt was started on, as the database has them; no I/O. */
#ifndef COORDINATOR_WLBD_REQUESTS_ATTEMPT_PLACES_H
#define COORDINATOR_WLBD_REQUESTS_ATTEMPT_PLACES_H

#include <jansson.h>

#include "coordinator/wlbd/liveness/names.h"
#include "libwlb/wlb.h"

struct wlbd_attempt_places {
	struct wlbd_names nodes; /* empty: not reported to wlbd, which was down when the attempt began */
	int tasks_per_node;      /* that wlbd decided, for all of `nodes`; 0: it did not decide on the attempt */
	int *ranks_on;           /* [nodes.count] what rank 0 recorded; NULL: nothing yet */
	int ranks;               /* the sum of ranks_on */
};

/* Reads the result of wlb_attempt_places() of the schema. wlbd_attempt_places_free releases the places, also where this
 * returns -1, out of memory or at a result that is not of that form. */
int wlbd_attempt_places_read(const json_t *result, struct wlbd_attempt_places *places, struct wlb_error *error);
void wlbd_attempt_places_free(struct wlbd_attempt_places *places);

#endif

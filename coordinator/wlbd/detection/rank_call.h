/* A call of a communicator as one of its ranks saw it, by the clock of its node. */
#ifndef COORDINATOR_WLBD_DETECTION_RANK_CALL_H
#define COORDINATOR_WLBD_DETECTION_RANK_CALL_H

#include "coordinator/wlbd/detection/activities.h"

struct wlbd_rank_call {
	int rank;
	char group[WLBD_ACTIVITY_GROUP_NAME_SIZE]; /* the communicator's name, as in the activities of the rank */
	int64_t seq;
	int64_t bytes;
	double entered_s; /* when it was started */
	double blocked_s; /* when the rank began to wait for it */
	double left_s;
};

#endif

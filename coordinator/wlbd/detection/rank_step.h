/* A step that a rank has ended, as its node reports it. */
#ifndef COORDINATOR_WLBD_DETECTION_RANK_STEP_H
#define COORDINATOR_WLBD_DETECTION_RANK_STEP_H

#include "coordinator/wlbd/detection/activities.h"
#include "libverdict/wlb_verdict.h"

/* What the rank spent on the calls of one communicator in the step. */
struct wlbd_rank_transfer {
	char group[WLBD_ACTIVITY_GROUP_NAME_SIZE]; /* its name, as in the activities of the rank */
	struct wlb_verdict_transfer transfer;      /* whose group is not set */
};

struct wlbd_rank_step {
	struct wlb_verdict_step ended; /* whose transfers are not set */
	int transfer_count;
	struct wlbd_rank_transfer transfers[WLBD_ACTIVITY_GROUPS_MAX];
};

#endif

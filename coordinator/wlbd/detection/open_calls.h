/*
 * The open calls of an attempt's communicators: calls that some members have entered and not left. Which members are in
 * a call, and which have not entered it, shows what a run that hangs waits for. No I/O.
 */
#ifndef COORDINATOR_WLBD_DETECTION_OPEN_CALLS_H
#define COORDINATOR_WLBD_DETECTION_OPEN_CALLS_H

#include "coordinator/wlbd/detection/world.h"

enum { WLBD_OPEN_CALLS_MAX = 8, WLBD_OPEN_CALL_RANKS = 16 };

struct wlbd_open_call_ranks {
	int list[WLBD_OPEN_CALL_RANKS]; /* the first of them, ascending */
	int count;                      /* in all */
};

struct wlbd_open_call {
	char communicator[WLBD_ACTIVITY_GROUP_NAME_SIZE];
	int kind; /* an index into wlbd_call_kind_names; -1: not known */
	int64_t sequence;
	struct wlbd_open_call_ranks inside;  /* have entered it, and not left */
	struct wlbd_open_call_ranks missing; /* have not entered it */
};

/* Writes one open call of each communicator that has any: the oldest call in which a member is blocked, or else the
 * newest. Calls in which members are missing come first. Returns how many; 0 if out of memory. */
int wlbd_open_calls_find(const struct wlbd_world *world, const struct wlbd_activities *activities,
                         struct wlbd_open_call calls[WLBD_OPEN_CALLS_MAX]);

#endif

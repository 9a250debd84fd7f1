/*
 * How long nothing has moved in an attempt of any trainer, found from the steps that are recorded or reported, and from
 * the activities of ranks, where the trainer reports activities. No I/O.
 */
#ifndef COORDINATOR_WLBD_DETECTION_STANDSTILL_H
#define COORDINATOR_WLBD_DETECTION_STANDSTILL_H

#include "coordinator/wlbd/detection/activities.h"

/* What is known of an attempt's progress. */
struct wlbd_progress {
	uint64_t steps;                           /* another number after each step that was recorded or reported */
	const struct wlbd_activities *activities; /* of its ranks; may be empty */
};

/* Begins as all 0. */
struct wlbd_standstill {
	uint64_t seen;    /* a hash of the progress */
	int64_t since_ms; /* when it was seen first; 0: nothing was */
	int moves;        /* how often it has changed */
	double longest_s; /* that it did not change, and then did */
	bool is_aside;    /* a rank starts, saves or evaluates, or a debugger has stopped it */
};

/* Takes the progress as it is now; call it about each second. Returns how long it has not changed, s. */
double wlbd_standstill_take(struct wlbd_standstill *still, const struct wlbd_progress *progress, int64_t now_ms);

/* Whether that is longer than `least_s`, than three times the longest healthy pause, and, where a rank is aside, than
 * half an hour. Before some steps have been seen, it never is: a program may report none. */
bool wlbd_standstill_is_long(const struct wlbd_standstill *still, double min_s, int64_t now_ms);

#endif

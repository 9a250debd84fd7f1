/* Fits the latency and the bandwidth of a link to the times of messages. */
#ifndef WORKER_CALIBRATE_LINK_FIT_H
#define WORKER_CALIBRATE_LINK_FIT_H

#include "libwlb/wlb.h"

struct wlb_link_point {
	double bytes; /* that a rank sends */
	double seconds;
};

/* Sets the link whose latency_s + bytes / bytes_per_s has the least sum of squared relative deviations from the points:
 * small and large messages count the same. A latency that would be negative is 0. Returns -1 where there are fewer than
 * two points, or where the times do not rise with the bytes. */
int wlb_link_fit(const struct wlb_link_point *points, int count, struct wlb_link *link, struct wlb_error *error);

#endif

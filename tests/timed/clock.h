/* Keeps the time of a timed device, whose operations run one after the other. */
#ifndef TESTS_TIMED_CLOCK_H
#define TESTS_TIMED_CLOCK_H

#include <stdint.h>

struct wlb_timed_clock {
	double free_s; /* when the device has finished all operations given to it; of CLOCK_MONOTONIC */
	double busy_s; /* time of all operations so far */
	double late_s; /* how much later than its end the last sleep returned */
	double factor; /* by which operations take longer now: that of the factor file */
	int64_t steps; /* updates of the optimizer that have ended */
	int is_queued; /* 1: an operation is only queued, and the host does not wait for it */
};

/* CLOCK_MONOTONIC */
double wlb_timed_clock_now(void);
void wlb_timed_clock_sleep(double until_s);
/* When an operation that is given to the device now would begin. */
double wlb_timed_clock_next(const struct wlb_timed_clock *clock);

/* Adds an operation that takes `takes_s` and starts when the device is free. Returns at once where the device is less
 * than a millisecond behind, because a sleep is not more exact than that; otherwise waits until the operation ends.
 * The next operation starts at that end however late the sleep returned, as operations that are queued on a device do.
 */
void wlb_timed_clock_add(struct wlb_timed_clock *clock, double takes_s);

/* Waits until the device has finished all operations. The next one starts after that: a message may lie between. */
void wlb_timed_clock_wait(struct wlb_timed_clock *clock);

#endif

/* Keeps the time of a timed device, whose operations run one after the other. */
#ifndef TESTS_TIMED_CLOCK_H
#define TESTS_TIMED_CLOCK_H

struct wlb_timed_clock {
	double free_s; /* when the device has finished all operations given to it; of CLOCK_MONOTONIC */
	double busy_s; /* time of all operations so far */
};

/* Adds an operation that takes `takes_s` and starts when the device is free. Returns at once where the device is less
 * than a millisecond behind, because a sleep is not more exact than that; otherwise waits until the operation ends. */
void wlb_timed_clock_add(struct wlb_timed_clock *clock, double takes_s);

/* Waits until the device has finished all operations. */
void wlb_timed_clock_wait(const struct wlb_timed_clock *clock);

#endif

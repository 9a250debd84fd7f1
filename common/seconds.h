/* Reads the monotonic clock in seconds, and computes times on it. */
#ifndef COMMON_SECONDS_H
#define COMMON_SECONDS_H

#include <time.h>

/* Seconds of CLOCK_MONOTONIC, which no process can set. */
static inline double wlb_now_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The time on that clock `seconds`, 0 or more, from now. */
static inline struct timespec wlb_after_s(double seconds)
{
	double until_s = wlb_now_s() + seconds;
	time_t whole_s = (time_t)until_s;
	return (struct timespec){.tv_sec = whole_s, .tv_nsec = (long)(1e9 * (until_s - (double)whole_s))};
}

#endif

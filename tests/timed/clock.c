#include "tests/timed/clock.h"

#include <errno.h>
#include <math.h>
#include <time.h>

static const double least_sleep_s = 1e-3;

double wlb_timed_clock_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void wlb_timed_clock_sleep(double until_s)
{
	double whole_s = floor(until_s);
	struct timespec until = {.tv_sec = (time_t)whole_s, .tv_nsec = (long)((until_s - whole_s) * 1e9)};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

double wlb_timed_clock_next(const struct wlb_timed_clock *clock)
{
	return fmax(clock->free_s, wlb_timed_clock_now() - clock->late_s);
}

void wlb_timed_clock_wait(struct wlb_timed_clock *clock)
{
	wlb_timed_clock_sleep(clock->free_s);
	clock->late_s = 0.0;
}

void wlb_timed_clock_add(struct wlb_timed_clock *clock, double takes_s)
{
	clock->busy_s += takes_s;
	clock->free_s = wlb_timed_clock_next(clock) + takes_s;
	if (clock->is_queued || clock->free_s - wlb_timed_clock_now() <= least_sleep_s)
		return;
	wlb_timed_clock_sleep(clock->free_s);
	clock->late_s = fmax(0.0, wlb_timed_clock_now() - clock->free_s);
}

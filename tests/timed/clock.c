#include "tests/timed/clock.h"

#include <errno.h>
#include <math.h>
#include <time.h>

static const double least_sleep_s = 1e-3;

static double now_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void sleep_until(double end_s)
{
	double whole_s = floor(end_s);
	struct timespec until = {.tv_sec = (time_t)whole_s, .tv_nsec = (long)((end_s - whole_s) * 1e9)};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

void wlb_timed_clock_wait(struct wlb_timed_clock *clock)
{
	sleep_until(clock->free_s);
	clock->late_s = 0.0;
}

void wlb_timed_clock_add(struct wlb_timed_clock *clock, double takes_s)
{
	double now = now_s();
	clock->busy_s += takes_s;
	clock->free_s = fmax(clock->free_s, now - clock->late_s) + takes_s;
	if (clock->free_s - now <= least_sleep_s)
		return;
	sleep_until(clock->free_s);
	clock->late_s = fmax(0.0, now_s() - clock->free_s);
}

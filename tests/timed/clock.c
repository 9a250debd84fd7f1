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

void wlb_timed_clock_wait(const struct wlb_timed_clock *clock)
{
	double whole_s = floor(clock->free_s);
	struct timespec until = {.tv_sec = (time_t)whole_s, .tv_nsec = (long)((clock->free_s - whole_s) * 1e9)};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

void wlb_timed_clock_add(struct wlb_timed_clock *clock, double takes_s)
{
	double now = now_s();
	clock->busy_s += takes_s;
	clock->free_s = fmax(clock->free_s, now) + takes_s;
	if (clock->free_s - now > least_sleep_s)
		wlb_timed_clock_wait(clock);
}

#include "common/clock.h"

#include <limits.h>
#include <time.h>

int64_t wlb_clock_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

double wlb_clock_unix_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

double wlb_clock_unix_at_s(int64_t at_ms)
{
	return wlb_clock_unix_s() - 1e-3 * (double)(wlb_clock_ms() - at_ms);
}

int wlb_clock_left_ms(int64_t deadline_ms)
{
	int64_t left = deadline_ms - wlb_clock_ms();
	if (left <= 0)
		return 0;
	return left > INT_MAX ? INT_MAX : (int)left;
}

void wlb_clock_sleep_ms(int64_t ms)
{
	struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	nanosleep(&pause, NULL);
}

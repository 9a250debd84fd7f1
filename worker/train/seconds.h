#ifndef WORKER_TRAIN_SECONDS_H
#define WORKER_TRAIN_SECONDS_H

#include <time.h>

/* Seconds on a clock that no one sets (CLOCK_MONOTONIC). */
static inline double wlb_now_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif

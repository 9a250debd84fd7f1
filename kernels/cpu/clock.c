#include "kernels/cpu/cpu.h"

#include <time.h>

/* Of the calling thread alone: it does its share of every operation, and the shares are alike, so between ranks with
 * equally many threads its time compares as the sum of all would. The time of the whole process would also count
 * threads that do not compute. */
double wlb_cpu_busy_s(struct wlb_device *device)
{
	(void)device;
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Measures the processor time of the calling thread. */
#include "kernels/cpu/cpu.h"

#include <time.h>

/* Returns the time of the calling thread alone. It computes its share of every operation, and all shares are equal, so
 * that its time is comparable between ranks with the same number of threads. The time of the whole process would also
 * count threads that do not compute. */
double wlb_cpu_busy_s(struct wlb_device *device)
{
	(void)device;
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

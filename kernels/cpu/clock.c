#include "kernels/cpu/cpu.h"

#include <time.h>

/* Of the calling thread alone: work is cut into equal parts of which it does one, so its time stands for that of the
 * others. The time of the whole process would count threads that wait for it, and those that do not compute. */
double wlb_cpu_busy_s(struct wlb_device *device)
{
	(void)device;
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

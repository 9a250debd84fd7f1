#include "worker/calibrate/stopwatch.h"

#include <math.h>
#include <stdlib.h>

#include "common/seconds.h"

enum { SAMPLES_MIN = 1, SAMPLES_MAX = 9, BATCH_MAX = 1000 };

/* A sample takes about this long at least, so that reading the clock does not count. */
static const double SAMPLE_S = 1e-3;

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

void wlb_sort(double *values, int count)
{
	qsort(values, (size_t)count, sizeof(*values), ascending);
}

double wlb_median(double *values, int count)
{
	wlb_sort(values, count);
	return count % 2 == 1 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

double wlb_busy_s(struct wlb_device *device, wlb_operation *operation, void *context, int count,
                  struct wlb_error *error)
{
	double from_s = device->ops->busy_s(device);
	for (int i = 0; i < count; i++)
		operation(device, context);
	if (device->ops->synchronize(device, error) < 0)
		return -1.0;
	return device->ops->busy_s(device) - from_s;
}

int wlb_stopwatch(struct wlb_device *device, wlb_operation *operation, void *context, double limit_s, double *seconds,
                  struct wlb_error *error)
{
	double samples[SAMPLES_MAX], until_s = wlb_now_s() + limit_s;
	double first_s = wlb_busy_s(device, operation, context, 1, error);
	if (first_s < 0.0)
		return -1;
	int batch = first_s * BATCH_MAX > SAMPLE_S ? (int)ceil(SAMPLE_S / first_s) : BATCH_MAX;
	int count = 0;
	while (count < SAMPLES_MIN || (count < SAMPLES_MAX && wlb_now_s() < until_s)) {
		double all_s = wlb_busy_s(device, operation, context, batch, error);
		if (all_s < 0.0)
			return -1;
		samples[count++] = all_s / batch;
	}
	*seconds = wlb_median(samples, count);
	return *seconds > 0.0 ? 0 : wlb_fail(error, "the clock of device %s does not advance", device->name);
}

int wlb_shortest(struct wlb_device *device, wlb_operation *operation, void *context, double *seconds,
                 struct wlb_error *error)
{
	enum { RUNS = 4 };
	*seconds = INFINITY;
	for (int i = 0; i < RUNS; i++) {
		double from_s = wlb_now_s();
		operation(device, context);
		if (device->ops->synchronize(device, error) < 0)
			return -1;
		*seconds = fmin(*seconds, wlb_now_s() - from_s);
	}
	return 0;
}

/* The time that an operation takes on a device: the median of repetitions. */
#ifndef WORKER_CALIBRATE_STOPWATCH_H
#define WORKER_CALIBRATE_STOPWATCH_H

#include "kernels/ops.h"

/* Queues one operation; its errors come with synchronize(). */
typedef void wlb_operation(struct wlb_device *device, void *context);

/* Returns the seconds of the device, by its own clock, for `count` operations together; below 0 on failure. */
double wlb_busy_s(struct wlb_device *device, wlb_operation *operation, void *context, int count,
                  struct wlb_error *error);

/* Sets *seconds to the median time of the operation, by the device's own clock (wlb_ops.busy_s): on a CPU, processor
 * time, so that a rank that shares its core is not measured as a slow one. Runs it once before it measures, then
 * once at least, and goes on until `limit_s` of elapsed time or 9 samples. Short operations are queued several at
 * a time. Returns -1 with the device's error, or where the clock did not advance. */
int wlb_stopwatch(struct wlb_device *device, wlb_operation *operation, void *context, double limit_s, double *seconds,
                  struct wlb_error *error);

/* Sets *seconds to the shortest elapsed time of the operation, of a few runs: what it takes where nothing disturbs it.
 * Returns -1 with the device's error. */
int wlb_shortest(struct wlb_device *device, wlb_operation *operation, void *context, double *seconds,
                 struct wlb_error *error);

/* Sorts values[count], the least first. */
void wlb_sort(double *values, int count);

/* The median of values[count], count >= 1, which are sorted; of an even count the mean of the middle two. */
double wlb_median(double *values, int count);

#endif

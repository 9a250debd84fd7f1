/* The time of each operation beside matrix products and attention. */
#ifndef WORKER_CALIBRATE_ELEMENTWISE_H
#define WORKER_CALIBRATE_ELEMENTWISE_H

#include "kernels/ops.h"

/* What is measured of these operations. */
struct wlb_elementwise {
	struct wlb_op_time operations[WLB_OPERATIONS];
	double memory_bytes_per_s; /* traffic of addition, copies, RMSNorm and AdamW, by the time of all four */
	double operation_s;        /* of an operation on one element */
};

/* Measures each operation on a few elements and on many, which gives its fixed time and that of an element. The
 * elements are others in each call, so that they come from memory and not from a cache. */
int wlb_measure_elementwise(struct wlb_device *device, int head_dim, double limit_s, struct wlb_elementwise *measured,
                            struct wlb_error *error);

/* Vectors for measuring addition and copies alone, as above. wlb_traffic_free frees them; NULL allowed. Returns NULL
 * with the device's error. */
struct wlb_traffic;
enum { WLB_TRAFFIC_ELEMENTS = 2 << 20 };
struct wlb_traffic *wlb_traffic_new(struct wlb_device *device, struct wlb_error *error);
void wlb_traffic_free(struct wlb_device *device, struct wlb_traffic *traffic);

/* Returns the seconds of the device, by its own clock, for `count` additions and as many copies, each of
 * WLB_TRAFFIC_ELEMENTS; below 0 on failure. */
double wlb_traffic_busy_s(struct wlb_device *device, struct wlb_traffic *traffic, int count, struct wlb_error *error);

#endif

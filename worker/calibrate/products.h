/* The rate of matrix products. */
#ifndef WORKER_CALIBRATE_PRODUCTS_H
#define WORKER_CALIBRATE_PRODUCTS_H

#include "kernels/ops.h"

/* Sets *elapsed_s to the shortest elapsed time of a product of usual size, which has *flops operations: the length of
 * the axes follows from it. */
int wlb_probe_products(struct wlb_device *device, double *elapsed_s, double *flops, struct wlb_error *error);

/* Measures the grid once: x W^T as a linear layer computes it. x is in the caches where it fits, as after the operation
 * that made it; the weight and the result are not, as in a model of many layers. */
int wlb_measure_products(struct wlb_device *device, double limit_s, struct wlb_gemm_rates *rates,
                         struct wlb_error *error);

/* Products of one size, for measuring them as above. wlb_products_free frees it; NULL allowed. Returns NULL with the
 * device's error. */
struct wlb_products *wlb_products_new(struct wlb_device *device, int64_t rows, int64_t depth, int64_t columns,
                                      struct wlb_error *error);
void wlb_products_free(struct wlb_device *device, struct wlb_products *products);

/* Returns the seconds of the device, by its own clock (wlb_ops.busy_s), for `count` of them; below 0 on failure. */
double wlb_products_busy_s(struct wlb_device *device, struct wlb_products *products, int count,
                           struct wlb_error *error);

/* Multiplies matrices for some time, until the processor has the speed that it has under load. */
int wlb_warm_up(struct wlb_device *device, double seconds, struct wlb_error *error);

#endif

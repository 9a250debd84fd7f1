/* The rate of matrix products. */
#ifndef WORKER_CALIBRATE_PRODUCTS_H
#define WORKER_CALIBRATE_PRODUCTS_H

#include "libwlb/wlb.h"
#include "worker/comm/comm.h"

/* Collective over `world`: every rank measures the same grid of products, x W^T as a linear layer computes it, with
 * axes as long as `limit_s` of elapsed time allows the slowest rank. */
int wlb_measure_products(struct wlb_device *device, struct wlb_comm *world, double limit_s,
                         struct wlb_gemm_rates *rates, struct wlb_error *error);

#endif

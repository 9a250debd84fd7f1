/* The grid of matrix products that are measured. */
#ifndef WORKER_CALIBRATE_PRODUCTS_GRID_H
#define WORKER_CALIBRATE_PRODUCTS_GRID_H

#include "worker/comm/comm.h"

/* Collective over `world`: sets the axes of the grid, as long as `limit_s` of elapsed time for `rounds` measurements
 * allows the slowest rank. Depth and columns are powers of two, as widths of models are multiples of; rows, which are
 * tokens of packed documents, are not. */
int wlb_choose_products(struct wlb_device *device, struct wlb_comm *world, double limit_s, int rounds,
                        struct wlb_gemm_rates *rates, struct wlb_error *error);

#endif

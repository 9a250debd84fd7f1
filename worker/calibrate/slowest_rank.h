/* How much longer the slowest rank computes than the times on which the ranks agree. */
#ifndef WORKER_CALIBRATE_SLOWEST_RANK_H
#define WORKER_CALIBRATE_SLOWEST_RANK_H

#include "libwlb/wlb.h"
#include "worker/comm/comm.h"

/* The product in the middle of each axis of a grid. */
struct wlb_middle_product {
	double rows, depth, columns;
	double flops_per_s; /* of the grid */
};

struct wlb_middle_product wlb_middle_product(const struct wlb_gemm_rates *rates);

/* Collective over `world`: sets *seconds to the time of the middle product on the slowest rank. For about limit_s
 * all ranks compute at the same time, as long as some layers do, and each time the slowest of them counts. The mean
 * is taken, and not the median as for single operations: a step of training is as long as what slows its ranks down
 * makes it. Ranks that are `deviation` times slower than the median do not count. */
int wlb_measure_slowest_rank(struct wlb_device *device, struct wlb_comm *world, double limit_s, double deviation,
                             const struct wlb_gemm_rates *rates, double *seconds, struct wlb_error *error);

/* Returns the longest of times_s[ranks] that is at most `deviation` times their median; they are sorted. */
double wlb_slowest(double *times_s, int ranks, double deviation);

#endif

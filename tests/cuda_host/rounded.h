/*
 * The CPU device in float64 with random roundings: the error of a pass in bfloat16, to first order.
 *
 * Rounding to the nearest multiplies a value that is stored by 1 + d with |d| <= u, u = 2^-8 in bfloat16 (Higham 2002,
 * section 2.2). Where the d of different values are independent with mean 0 (Higham & Mary 2019), the error of a result
 * is to first order the sum of what each d alone causes, and its variance the sum of theirs. That variance is measured
 * instead of being written down for each family and each tensor (Monte Carlo arithmetic, Parker 1997): every value that
 * the CUDA device stores in bfloat16 is multiplied by 1 + d, d uniform in [-u, u]. Of x in [2^e, 2^(e + 1)) a rounding
 * has the variance (2^e u)^2 / 3 at most, and x d has (x u)^2 / 3, which is no less.
 *
 * Stored in bfloat16 are the results of operations and, inside attention, what enters a product of tensor cores:
 * probabilities, and gradients of scores. Sums, statistics, angles and gradients of weights are in float32, whose u is
 * 2^-24: with some hundred roundings each they are not counted. A copy rounds nothing.
 */
#ifndef CUDA_HOST_ROUNDED_H
#define CUDA_HOST_ROUNDED_H

#include "kernels/ops.h"

/* From now on the operations of this CPU device in float64 round at random. One device at a time. */
void rounded_begin(struct wlb_device *device, uint64_t seed);
/* Ends that. */
void rounded_end(struct wlb_device *device);

#endif

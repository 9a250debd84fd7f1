/*
 * Functions that the tests of the kernels share: devices of every variant, repeatable numbers, comparison, and central
 * differences.
 *
 * Tests hold numbers in double; "device arrays" are in the device's element type. Inputs are small: every operation is
 * compared with a slow and clear version in double in the test itself.
 */
#ifndef TESTS_UNIT_KERNELS_SUPPORT_H
#define TESTS_UNIT_KERNELS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernels/ops.h"

/* Calls `check` with a device of each element type and each instruction set that this processor has. */
void for_each_device(void (*check)(struct wlb_device *device));

/* The float64 device of the best instruction set, with `threads` threads. */
struct wlb_device *open_double(int threads);

/* Numbers in [-1, 1], the same for the same seed. The caller frees. */
double *random_numbers(size_t count, uint64_t seed);

/* A device array of `count` numbers, set from `values` (NULL: zeros). Freed with release(). */
void *to_array(struct wlb_device *device, const double *values, size_t count);

/* The numbers of a device array. The caller frees. */
double *from_array(struct wlb_device *device, const void *array, size_t count);

/* Fails the test where |got - want| > tolerance * (1 + |want|) for one of `count` elements; `what` names them. The
 * tolerance is `for_float` on a float32 device and 1e-12 on a float64 one. */
void check_close(struct wlb_device *device, const char *what, const void *got, const double *want, size_t count,
                 double for_float);

/* Fails the test where two device arrays of `count` elements have other bits. */
void check_same_bits(struct wlb_device *device, const char *what, const void *got, const void *want, size_t count);

/* Central differences of a function of some numbers: `loss` is called with `values` moved up and down, one at a time
 * (of a large array, a hundred or so, spread over it). Fails
 * where `gradient` (a float64 device array) is off by more than 1e-7 * (1 + |gradient|). */
struct difference_check {
	double (*loss)(void *context); /* reads `values` */
	void *context;
	double *values; /* a float64 device array on a device with host memory */
	const double *gradient;
	size_t count;
};
void check_differences(const char *what, const struct difference_check *check);

/* Sum of weights[i] * array[i]: makes one number out of an output, so that d_out is `weights`. */
double weighted_sum(const double *array, const double *weights, size_t count);

/* A device array that is to be released at the end of a test. */
#define RELEASE(device, ...)                                                                                           \
	do {                                                                                                           \
		void *all_[] = {__VA_ARGS__};                                                                          \
		for (size_t i_ = 0; i_ < sizeof(all_) / sizeof(all_[0]); i_++)                                         \
			(device)->ops->release((device), all_[i_]);                                                    \
	} while (0)

#endif

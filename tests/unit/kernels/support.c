#include "tests/unit/kernels/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/cpu.h"

/* Elements of one array that are moved: each costs two forward passes. */
enum { DIFFERENCES = 100 };

void for_each_device(void (*check)(struct wlb_device *device))
{
	static const int threads[] = {1, 3};
	for (int isa = 0; isa < WLB_CPU_ISA_COUNT; isa++) {
		if (!wlb_cpu_isa_usable(isa))
			continue;
		for (int dtype = WLB_FLOAT32; dtype <= WLB_FLOAT64; dtype++)
			for (size_t t = 0; t < sizeof(threads) / sizeof(threads[0]); t++) {
				struct wlb_device *device = wlb_cpu_open_isa(dtype, threads[t], isa, NULL);
				assert_non_null(device);
				check(device);
				assert_int_equal(device->ops->synchronize(device, NULL), 0);
				wlb_device_close(device);
			}
	}
}

struct wlb_device *open_double(int threads)
{
	struct wlb_device *device = wlb_device_open_cpu(WLB_FLOAT64, threads, NULL);
	assert_non_null(device);
	return device;
}

double *random_numbers(size_t count, uint64_t seed)
{
	double *numbers = calloc(count + 1, sizeof(*numbers));
	assert_non_null(numbers);
	uint64_t state = seed * 2 + 1;
	for (size_t i = 0; i < count; i++) {
		state = state * 6364136223846793005U + 1442695040888963407U;
		numbers[i] = (double)(int64_t)(state >> 11) / (double)(INT64_C(1) << 52) - 1;
	}
	return numbers;
}

void *to_array(struct wlb_device *device, const double *values, size_t count)
{
	size_t bytes = count * wlb_dtype_bytes(device->compute);
	void *array = device->ops->alloc(device, bytes, NULL);
	assert_non_null(array);
	if (values == NULL)
		return array;
	if (device->compute == WLB_FLOAT64) {
		device->ops->to_device(device, NULL, array, values, bytes);
		return array;
	}
	float *rounded = calloc(count + 1, sizeof(*rounded));
	assert_non_null(rounded);
	for (size_t i = 0; i < count; i++)
		rounded[i] = (float)values[i];
	device->ops->to_device(device, NULL, array, rounded, bytes);
	free(rounded);
	return array;
}

double *from_array(struct wlb_device *device, const void *array, size_t count)
{
	double *values = calloc(count + 1, sizeof(*values));
	assert_non_null(values);
	device->ops->to_host(device, values, array, count * wlb_dtype_bytes(device->compute));
	if (device->compute == WLB_FLOAT32) /* spread from the end, so that no float is overwritten before it is read */
		for (size_t i = count; i-- > 0;)
			values[i] = ((const float *)values)[i];
	return values;
}

void check_close(struct wlb_device *device, const char *what, const void *got_array, const double *want, size_t count,
                 double for_float)
{
	double tolerance = device->compute == WLB_FLOAT32 ? for_float : 1e-12;
	double *got = from_array(device, got_array, count);
	for (size_t i = 0; i < count; i++)
		if (!(got[i] == want[i]) && !(fabs(got[i] - want[i]) <= tolerance * (1 + fabs(want[i]))))
			fail_msg("%s[%zu] (%s): got %.17g, want %.17g", what, i, wlb_dtype_name(device->compute),
			         got[i], want[i]);
	free(got);
}

void check_same_bits(struct wlb_device *device, const char *what, const void *got_array, const void *want_array,
                     size_t count)
{
	double *got = from_array(device, got_array, count), *want = from_array(device, want_array, count);
	for (size_t i = 0; i < count; i++)
		if (memcmp(&got[i], &want[i], sizeof(*got)) != 0)
			fail_msg("%s[%zu]: got %.17g, want the bits of %.17g", what, i, got[i], want[i]);
	free(got), free(want);
}

void check_differences(const char *what, const struct difference_check *check)
{
	const double h = 1e-5;
	size_t stride = check->count / DIFFERENCES + 1;
	for (size_t i = 0; i < check->count; i += stride) {
		double kept = check->values[i];
		check->values[i] = kept + h;
		double above = check->loss(check->context);
		check->values[i] = kept - h;
		double below = check->loss(check->context);
		check->values[i] = kept;
		double want = (above - below) / (2 * h);
		if (!(fabs(check->gradient[i] - want) <= 1e-7 * (1 + fabs(want))))
			fail_msg("%s[%zu]: gradient %.12g, central difference %.12g", what, i, check->gradient[i],
			         want);
	}
}

double weighted_sum(const double *array, const double *weights, size_t count)
{
	double sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += array[i] * weights[i];
	return sum;
}

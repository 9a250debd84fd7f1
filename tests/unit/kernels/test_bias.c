#include "tests/unit/kernels/support.h"

#include <stdlib.h>

static const struct {
	int64_t rows, width, stride;
} SIZES[] = {{1, 1, 1}, {3, 17, 20}, {17, 3, 3}, {129, 130, 200}, {0, 5, 5}};

/* Columns after those with a bias are unchanged; the gradient is added to what was there. */
static void check_size(struct wlb_device *device, int64_t rows, int64_t width, int64_t stride)
{
	size_t n = (size_t)(rows * stride), w = (size_t)width;
	double *y = random_numbers(n, 1), *bias = random_numbers(w, 2), *sums = random_numbers(w, 2);
	void *ya = to_array(device, y, n), *ba = to_array(device, bias, w), *da = to_array(device, bias, w);
	for (int64_t row = 0; row < rows; row++)
		for (int64_t i = 0; i < width; i++)
			sums[i] += y[row * stride + i];
	device->ops->bias_backward(device, da, ya, stride, rows, width);
	check_close(device, "gradient", da, sums, w, 2e-5);
	device->ops->add_bias(device, ya, stride, ba, rows, width);
	for (int64_t row = 0; row < rows; row++)
		for (int64_t i = 0; i < width; i++)
			y[row * stride + i] += bias[i];
	check_close(device, "sum", ya, y, n, 2e-7);
	RELEASE(device, ya, ba, da);
	free(y), free(bias), free(sums);
}

static void check_bias(struct wlb_device *device)
{
	for (size_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); i++)
		check_size(device, SIZES[i].rows, SIZES[i].width, SIZES[i].stride);
}

static void test_bias(void **state)
{
	(void)state;
	for_each_device(check_bias);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_bias)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "tests/unit/kernels/support.h"

#include <math.h>
#include <stdlib.h>

static const size_t SIZES[] = {0, 1, 3, 17, 257, 40001};

static void check_changed(struct wlb_device *device, const double *x, size_t n)
{
	double *want = random_numbers(n, 1);
	void *xa = to_array(device, x, n);
	device->ops->scale(device, xa, 7.5, (int64_t)n);
	for (size_t i = 0; i < n; i++)
		want[i] = 7.5 * x[i];
	check_close(device, "7.5 x", xa, want, n, 1e-6);
	device->ops->softcap(device, xa, 2.5, (int64_t)n);
	for (size_t i = 0; i < n; i++)
		want[i] = 2.5 * tanh(want[i] / 2.5);
	check_close(device, "soft cap", xa, want, n, 1e-6);
	RELEASE(device, xa);
	free(want);
}

static void check_size(struct wlb_device *device, size_t n)
{
	double *x = random_numbers(n, 1), *y = random_numbers(n, 2);
	void *xa = to_array(device, x, n), *ya = to_array(device, y, n);
	double *sum = device->ops->alloc(device, sizeof(double), NULL);
	double got = 3;
	device->ops->to_device(device, NULL, sum, &got, sizeof(got));
	for (size_t i = 0; i < n; i++)
		y[i] += x[i];
	device->ops->add(device, ya, xa, (int64_t)n);
	check_close(device, "y + x", ya, y, n, 1e-6);
	for (size_t i = 0; i < n; i++)
		y[i] += x[i];
	device->ops->add_gradients(device, ya, xa, (int64_t)n);
	check_close(device, "y + x of gradients", ya, y, n, 1e-6);
	check_changed(device, x, n);
	device->ops->sum_squares(device, sum, ya, (int64_t)n);
	device->ops->to_host(device, &got, sum, sizeof(got));
	double want = 3 + weighted_sum(y, y, n);
	assert_true(fabs(got - want) <= (device->compute == WLB_FLOAT32 ? 1e-6 : 1e-12) * want);
	RELEASE(device, xa, ya, sum);
	free(x), free(y);
}

static void check_vectors(struct wlb_device *device)
{
	for (size_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); i++)
		check_size(device, SIZES[i]);
}

static void test_vectors(void **state)
{
	(void)state;
	for_each_device(check_vectors);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_vectors)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

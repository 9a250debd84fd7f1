#include "tests/unit/kernels/support.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>

enum { TOKENS = 19, HEADS = 3 };

/* Positions restart with each document, and one is far away. */
static const int32_t POSITIONS[TOKENS] = {0, 1, 2, 3, 0, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 131071, 8, 9, 10};

/* Element i and i + head_dim / 2 of a head are the real and imaginary part that turn by position * theta^(-2i/d). */
static void reference_rope(double *x, int head_dim, double theta)
{
	int half = head_dim / 2;
	for (int t = 0; t < TOKENS; t++)
		for (int h = 0; h < HEADS; h++)
			for (int i = 0; i < half; i++) {
				double *head = x + (t * HEADS + h) * head_dim;
				double angle = POSITIONS[t] * pow(theta, -2.0 * i / head_dim);
				double complex z = (head[i] + I * head[i + half]) * cexp(I * angle);
				head[i] = creal(z);
				head[i + half] = cimag(z);
			}
}

static void check_rope_size(struct wlb_device *device, int head_dim)
{
	size_t n = (size_t)(TOKENS * HEADS * head_dim);
	double *x = random_numbers(n, 1), *want = random_numbers(n, 1);
	void *xa = to_array(device, x, n);
	reference_rope(want, head_dim, 10000);
	device->ops->rope(device, xa, POSITIONS, TOKENS, HEADS, head_dim, 10000, 1);
	check_close(device, "rotated", xa, want, n, 2e-6);
	device->ops->rope(device, xa, POSITIONS, TOKENS, HEADS, head_dim, 10000, -1);
	check_close(device, "rotated back", xa, x, n, 2e-6);
	RELEASE(device, xa);
	free(x), free(want);
}

static void check_rope(struct wlb_device *device)
{
	check_rope_size(device, 2);
	check_rope_size(device, 6);
	check_rope_size(device, 64);
	device->ops->rope(device, NULL, POSITIONS, 0, HEADS, 64, 10000, 1);
}

static void test_rope(void **state)
{
	(void)state;
	for_each_device(check_rope);
}

/* The rotation is orthogonal, so its gradient is the rotation back: <rope(x), y> = <x, rope^-1(y)>. */
static void test_gradient(void **state)
{
	(void)state;
	enum { HEAD_DIM = 6, N = TOKENS * HEADS * HEAD_DIM };
	struct wlb_device *device = open_double(1);
	double *x = random_numbers(N, 1), *y = random_numbers(N, 2), *x0 = random_numbers(N, 1);
	device->ops->rope(device, x, POSITIONS, TOKENS, HEADS, HEAD_DIM, 10000, 1);
	double forward = weighted_sum(x, y, N);
	device->ops->rope(device, y, POSITIONS, TOKENS, HEADS, HEAD_DIM, 10000, -1);
	assert_true(fabs(forward - weighted_sum(x0, y, N)) < 1e-12);
	free(x), free(y), free(x0);
	wlb_device_close(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_rope), cmocka_unit_test(test_gradient)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "tests/unit/kernels/support.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>

enum { TOKENS = 19, HEADS = 3 };

/* Positions restart with each document, and one is far away. */
static const int32_t POSITIONS[TOKENS] = {0, 1, 2, 3, 0, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 131071, 8, 9, 10};

/* Element i and i + head_dim / 2 of a head are the real and imaginary part that turn by position * theta^(-2i/d). */
static void reference_rope(double *x, int stride, int head_dim, double theta)
{
	int half = head_dim / 2;
	for (int t = 0; t < TOKENS; t++)
		for (int h = 0; h < HEADS; h++)
			for (int i = 0; i < half; i++) {
				double *head = x + t * stride + h * head_dim;
				double angle = POSITIONS[t] * pow(theta, -2.0 * i / head_dim);
				double complex z = (head[i] + I * head[i + half]) * cexp(I * angle);
				head[i] = creal(z);
				head[i + half] = cimag(z);
			}
}

static void *angles_of(struct wlb_device *device, int head_dim)
{
	void *angles = to_array(device, NULL, (size_t)(TOKENS * head_dim));
	device->ops->rope_angles(device, angles, POSITIONS, TOKENS, head_dim, 10000);
	return angles;
}

/* Rows have columns after those that are rotated, which are unchanged. */
static void check_rope_size(struct wlb_device *device, int head_dim, int more)
{
	int stride = HEADS * head_dim + more;
	size_t n = (size_t)(TOKENS * stride);
	double *x = random_numbers(n, 1), *want = random_numbers(n, 1);
	void *xa = to_array(device, x, n), *angles = angles_of(device, head_dim);
	reference_rope(want, stride, head_dim, 10000);
	device->ops->rope(device, xa, stride, angles, TOKENS, HEADS, head_dim, 1);
	check_close(device, "rotated", xa, want, n, 2e-6);
	device->ops->rope(device, xa, stride, angles, TOKENS, HEADS, head_dim, -1);
	check_close(device, "rotated back", xa, x, n, 2e-6);
	RELEASE(device, xa, angles);
	free(x), free(want);
}

static void check_rope(struct wlb_device *device)
{
	check_rope_size(device, 2, 0);
	check_rope_size(device, 6, 5);
	check_rope_size(device, 64, 64);
	device->ops->rope_angles(device, NULL, POSITIONS, 0, 64, 10000);
	device->ops->rope(device, NULL, 64, NULL, 0, HEADS, 64, 1);
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
	void *angles = angles_of(device, HEAD_DIM);
	device->ops->rope(device, x, HEADS * HEAD_DIM, angles, TOKENS, HEADS, HEAD_DIM, 1);
	double forward = weighted_sum(x, y, N);
	device->ops->rope(device, y, HEADS * HEAD_DIM, angles, TOKENS, HEADS, HEAD_DIM, -1);
	assert_true(fabs(forward - weighted_sum(x0, y, N)) < 1e-12);
	RELEASE(device, angles);
	free(x), free(y), free(x0);
	wlb_device_close(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_rope), cmocka_unit_test(test_gradient)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

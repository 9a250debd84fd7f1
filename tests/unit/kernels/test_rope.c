#include "tests/unit/kernels/support.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>

enum { TOKENS = 19, HEADS = 3 };

/* Positions restart with each document, and one is far away. */
static const int32_t POSITIONS[TOKENS] = {0, 1, 2, 3, 0, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 131071, 8, 9, 10};

static double frequency(int i, int pairs)
{
	return pow(10000, -(double)i / pairs);
}

/* Element i and i + pairs of a head are the real and imaginary part that turn by position * frequency. */
static void reference_rope(double *x, int stride, int head_dim, int pairs, double scale)
{
	for (int t = 0; t < TOKENS; t++)
		for (int h = 0; h < HEADS; h++)
			for (int i = 0; i < pairs; i++) {
				double *head = x + t * stride + h * head_dim,
				       angle = POSITIONS[t] * frequency(i, pairs);
				double complex z = scale * (head[i] + I * head[i + pairs]) * cexp(I * angle);
				head[i] = creal(z);
				head[i + pairs] = cimag(z);
			}
}

static void *angles_of(struct wlb_device *device, int pairs, double scale)
{
	double frequencies[64];
	void *angles = to_array(device, NULL, (size_t)(TOKENS * 2 * pairs));
	for (int i = 0; i < pairs; i++)
		frequencies[i] = frequency(i, pairs);
	device->ops->rope_angles(device, angles, POSITIONS, TOKENS, frequencies, pairs, scale);
	return angles;
}

/* Heads have elements, and rows columns, after those that are rotated, which are unchanged. */
static void check_rope_size(struct wlb_device *device, int head_dim, int pairs, int more, double scale)
{
	int stride = HEADS * head_dim + more;
	size_t n = (size_t)(TOKENS * stride);
	double *x = random_numbers(n, 1), *want = random_numbers(n, 1);
	void *xa = to_array(device, x, n), *angles = angles_of(device, pairs, scale);
	reference_rope(want, stride, head_dim, pairs, scale);
	device->ops->rope(device, xa, stride, angles, TOKENS, HEADS, head_dim, pairs, 1);
	check_close(device, "rotated", xa, want, n, 2e-6);
	device->ops->rope(device, xa, stride, angles, TOKENS, HEADS, head_dim, pairs, -1);
	if (scale == 1.0)
		check_close(device, "rotated back", xa, x, n, 2e-6);
	RELEASE(device, xa, angles);
	free(x), free(want);
}

static void check_rope(struct wlb_device *device)
{
	check_rope_size(device, 2, 1, 0, 1.0);
	check_rope_size(device, 6, 3, 5, 1.0);
	check_rope_size(device, 64, 32, 64, 1.0);
	check_rope_size(device, 16, 6, 3, 1.0);
	check_rope_size(device, 8, 4, 0, 1.25);
	device->ops->rope_angles(device, NULL, POSITIONS, 0, NULL, 32, 1.0);
	device->ops->rope(device, NULL, 64, NULL, 0, HEADS, 64, 32, 1);
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
	void *angles = angles_of(device, HEAD_DIM / 2, 1.0);
	device->ops->rope(device, x, HEADS * HEAD_DIM, angles, TOKENS, HEADS, HEAD_DIM, HEAD_DIM / 2, 1);
	double forward = weighted_sum(x, y, N);
	device->ops->rope(device, y, HEADS * HEAD_DIM, angles, TOKENS, HEADS, HEAD_DIM, HEAD_DIM / 2, -1);
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

#include "tests/unit/kernels/support.h"

#include <stdlib.h>

enum { ROWS = 301, COUNT = 523 };

static const int64_t WIDTHS[] = {1, 3, 64, 257};

/* Rows come in any order, several times or never; every fifth is none. Strides are wider than the rows, and what lies
 * between rows is unchanged. */
static void check_width(struct wlb_device *device, int64_t width)
{
	int32_t host[COUNT];
	int64_t stride = width + 5, out_stride = width + 2;
	size_t x_n = (size_t)(ROWS * stride), out_n = (size_t)(COUNT * out_stride);
	double *x = random_numbers(x_n, 1), *want = random_numbers(out_n, 2);
	void *xa = to_array(device, x, x_n), *outa = to_array(device, want, out_n);
	void *rows = device->ops->alloc(device, sizeof(host), NULL);
	for (int64_t i = 0; i < COUNT; i++) {
		host[i] = i % 5 == 2 ? -1 : (int32_t)(i * i % ROWS);
		for (int64_t j = 0; j < width; j++)
			want[i * out_stride + j] = host[i] < 0 ? 0 : x[host[i] * stride + j];
	}
	device->ops->to_device(device, NULL, rows, host, sizeof(host));
	device->ops->gather_rows(device, outa, out_stride, xa, stride, rows, COUNT, width);
	check_close(device, "out", outa, want, out_n, 1e-7);
	for (int64_t i = 0; i < ROWS; i++)
		for (int64_t j = 0; j < width; j++)
			want[i * out_stride + j] = x[i * stride + j];
	device->ops->gather_rows(device, outa, out_stride, xa, stride, NULL, ROWS, width);
	check_close(device, "rows in order", outa, want, out_n, 1e-7);
	check_close(device, "x", xa, x, x_n, 1e-7);
	RELEASE(device, xa, outa, rows);
	free(x), free(want);
}

static void check_rows(struct wlb_device *device)
{
	for (size_t i = 0; i < sizeof(WIDTHS) / sizeof(WIDTHS[0]); i++)
		check_width(device, WIDTHS[i]);
	device->ops->gather_rows(device, NULL, 3, NULL, 3, NULL, 0, 3);
}

static void test_rows(void **state)
{
	(void)state;
	for_each_device(check_rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What the product's CUDA device reserves is enough for its operations on any number of rows up to the largest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/ops.h"
#include "tests/cuda_host/count.h"

enum { ROWS = 300, WIDTH = 64 };

struct arrays {
	void *x, *y, *master, *sums;
	int32_t *ids;
};

static void run_operations(struct wlb_device *device, const struct arrays *a, int64_t rows)
{
	const struct wlb_ops *ops = device->ops;
	ops->embedding_backward(device, a->master, a->x, a->ids, rows, WIDTH, 0, WIDTH);
	ops->rmsnorm_backward(device, a->y, a->master, a->x, a->x, a->x, 0, a->sums, rows, WIDTH);
	ops->cross_entropy_statistics(device, a->sums, a->x, a->ids, rows, 0, WIDTH);
	ops->cross_entropy_gradient(device, NULL, a->x, a->sums, 1, a->ids, rows, 0, WIDTH, 1.0, 0);
	ops->bias_backward(device, a->master, a->x, WIDTH, rows, WIDTH);
	const struct wlb_norm_groups heads = {.rows = rows, .groups = 8, .width = WIDTH / 8, .total = 1, .epsilon = 1};
	ops->group_norm_backward(device, a->x, WIDTH, a->master, a->y, WIDTH, a->x, a->y, a->x, &heads);
	ops->sum_squares(device, a->sums, a->master, rows * WIDTH);
}

/* Few rows may need more than many: a sum of RMSNorm has 256 parts of 256 rows, and 150 of 300. */
static void what_is_reserved_is_enough(void **state)
{
	(void)state;
	static const int64_t rows[] = {1, 31, 256, 257, ROWS};
	struct wlb_error error = {0};
	struct wlb_device *device = wlb_device_open_cuda(0, WLB_FLOAT32, WLB_FLOAT32, &error);
	assert_non_null(device);
	const struct wlb_ops *ops = device->ops;
	const size_t bytes = (size_t)ROWS * WIDTH * sizeof(float);
	const struct arrays a = {.x = ops->alloc(device, bytes, &error),
	                         .y = ops->alloc(device, bytes, &error),
	                         .master = ops->alloc(device, bytes, &error),
	                         .sums = ops->alloc(device, bytes, &error),
	                         .ids = ops->alloc(device, ROWS * sizeof(int32_t), &error)};
	const struct wlb_largest_pass largest = {.rows = ROWS, .width = WIDTH, .heads = 1, .columns = WIDTH};
	assert_int_equal(ops->reserve(device, &largest, &error), 0);
	const long before = cuda_host_get_counts().memory;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		run_operations(device, &a, rows[i]);
	assert_int_equal(cuda_host_get_counts().memory, before);
	assert_int_equal(ops->synchronize(device, &error), 0);
	void *const all[] = {a.x, a.y, a.master, a.sums, a.ids};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		ops->release(device, all[i]);
	wlb_device_close(device);
}

static void what_cannot_be_reserved_is_named(void **state)
{
	(void)state;
	struct wlb_error error = {0};
	struct wlb_device *device = wlb_device_open_cuda(0, WLB_FLOAT32, WLB_FLOAT32, &error);
	assert_non_null(device);
	const struct wlb_largest_pass largest = {.rows = INT64_C(1) << 33, .width = WIDTH, .heads = 1};
	assert_int_equal(device->ops->reserve(device, &largest, &error), -1);
	assert_non_null(strstr(error.message,
	                       "cuda:0: scratch memory of all operations: cannot allocate 274.878 GB on cuda:0: "
	                       "out of memory: "));
	wlb_device_close(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_reserved_is_enough),
		cmocka_unit_test(what_cannot_be_reserved_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

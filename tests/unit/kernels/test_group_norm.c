#include "tests/unit/kernels/support.h"

#include <math.h>
#include <stdlib.h>

/* Columns of a row that are in no group. */
enum { MORE = 5 };

static const struct {
	int64_t rows;
	int groups;
	int64_t width;
	double addend;
} SIZES[] = {{1, 1, 1, 0}, {3, 2, 17, 0}, {17, 3, 4, 1}, {129, 1, 130, 0}, {0, 2, 5, 0}, {5, 2, 33, 1}};

static struct wlb_norm_groups groups_of(size_t size)
{
	return (struct wlb_norm_groups){.rows = SIZES[size].rows,
	                                .groups = SIZES[size].groups,
	                                .width = SIZES[size].width,
	                                .total = (double)SIZES[size].width,
	                                .epsilon = 1e-5,
	                                .weight_addend = SIZES[size].addend};
}

static void check_forward_size(struct wlb_device *device, const struct wlb_norm_groups *g)
{
	int64_t stride = g->groups * g->width + MORE;
	size_t n = (size_t)(g->rows * stride), lines = (size_t)(g->rows * g->groups), width = (size_t)g->width;
	double *x = random_numbers(n, 1), *weight = random_numbers(width, 2), *want = random_numbers(n, 3);
	double *squares = random_numbers(lines, 4);
	void *xa = to_array(device, x, n), *wa = to_array(device, weight, width), *out = to_array(device, want, n);
	void *sums = to_array(device, NULL, lines);
	for (size_t line = 0; line < lines; line++) {
		size_t at = line / (size_t)g->groups * (size_t)stride + line % (size_t)g->groups * width;
		squares[line] = weighted_sum(x + at, x + at, width);
		for (size_t i = 0; i < width; i++)
			want[at + i] =
				x[at + i] / sqrt(squares[line] / (double)width + 1e-5) * (weight[i] + g->weight_addend);
	}
	device->ops->group_norm_sums(device, sums, xa, stride, xa, stride, NULL, g);
	check_close(device, "squares", sums, squares, lines, 1e-5);
	device->ops->group_norm_forward(device, out, stride, xa, stride, sums, wa, g);
	check_close(device, "out", out, want, n, 2e-6);
	RELEASE(device, xa, wa, out, sums);
	free(x), free(weight), free(want), free(squares);
}

static void check_forward(struct wlb_device *device)
{
	for (size_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); i++) {
		const struct wlb_norm_groups g = groups_of(i);
		check_forward_size(device, &g);
	}
}

static void test_forward(void **state)
{
	(void)state;
	for_each_device(check_forward);
}

struct run {
	struct wlb_device *device;
	const struct wlb_norm_groups *groups;
	int64_t stride;
	double *x, *weight, *out, *squares, *weights;
};

static double run_loss(void *context)
{
	struct run *r = context;
	const struct wlb_norm_groups *g = r->groups;
	const struct wlb_ops *ops = r->device->ops;
	double sum = 0;
	ops->group_norm_sums(r->device, r->squares, r->x, r->stride, r->x, r->stride, NULL, g);
	ops->group_norm_forward(r->device, r->out, r->stride, r->x, r->stride, r->squares, r->weight, g);
	for (int64_t row = 0; row < g->rows; row++)
		sum += weighted_sum(r->out + row * r->stride, r->weights + row * r->stride,
		                    (size_t)(g->groups * g->width));
	return sum;
}

/* The gradient of the weight is added to what was there, that of x replaces that of the result. */
static void check_backward(struct wlb_device *device, const struct wlb_norm_groups *g)
{
	int64_t stride = g->groups * g->width + MORE;
	size_t n = (size_t)(g->rows * stride), lines = (size_t)(g->rows * g->groups), width = (size_t)g->width;
	struct run r = {device, g, stride, .x = random_numbers(n, 1), .weight = random_numbers(width, 2)};
	double *d = random_numbers(n, 3), *d_weight = random_numbers(width, 4), *before = random_numbers(width, 4);
	double *products = random_numbers(lines, 5);
	r.out = random_numbers(n, 6), r.squares = random_numbers(lines, 7), r.weights = random_numbers(n, 3);
	run_loss(&r);
	device->ops->group_norm_sums(device, products, r.x, stride, d, stride, r.weight, g);
	device->ops->group_norm_backward(device, d, stride, d_weight, r.x, stride, r.squares, products, r.weight, g);
	for (size_t i = 0; i < width; i++)
		d_weight[i] -= before[i];
	for (int64_t row = 0; row < g->rows; row++)
		for (int64_t i = g->groups * g->width; i < stride; i++) {
			assert_true(d[row * stride + i] == r.weights[row * stride + i]);
			d[row * stride + i] = 0; /* no result depends on these columns */
		}
	check_differences("d_x", &(struct difference_check){run_loss, &r, r.x, d, n});
	check_differences("d_weight", &(struct difference_check){run_loss, &r, r.weight, d_weight, width});
	free(r.x), free(r.weight), free(r.out), free(r.squares), free(r.weights);
	free(d), free(d_weight), free(before), free(products);
}

static void test_backward(void **state)
{
	(void)state;
	struct wlb_device *device = open_double(2);
	for (size_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); i++) {
		const struct wlb_norm_groups g = groups_of(i);
		check_backward(device, &g);
	}
	wlb_device_close(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_forward), cmocka_unit_test(test_backward)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

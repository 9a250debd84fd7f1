/* Biases, and norms of groups of columns. */
#include "tests/gpu/check_kernels.h"

#include <math.h>

/* -- biases of `width` columns; rows have `pad` columns more -- */

static int64_t bias_stride(const struct check_trial *t)
{
	return t->shape->width + t->shape->pad;
}

static void plan_add_bias(struct check_trial *t)
{
	t->arrays[0] = check_array_of(CHECK_COMPUTE, t->shape->rows * bias_stride(t), -1, 1);
	t->arrays[1] = check_array_of(CHECK_COMPUTE, t->shape->width, -1, 1);
}

static void run_add_bias(struct check_trial *t)
{
	wlb_cuda_add_bias(t->device, t->arrays[0].memory, bias_stride(t), t->arrays[1].memory, t->shape->rows,
	                  t->shape->width);
}

static void expect_add_bias(struct check_trial *t)
{
	for (int64_t row = 0; row < t->shape->rows; row++)
		for (int64_t i = 0; i < t->shape->width; i++) {
			const int64_t at = row * bias_stride(t) + i;
			const double want = t->arrays[0].before[at] + t->arrays[1].before[i];
			check_want(t, &t->arrays[0], at, want, FLOAT_ROUNDOFF * fabs(want));
		}
}

static void plan_bias_backward(struct check_trial *t)
{
	t->arrays[0] = check_array_of(CHECK_GRADIENTS, t->shape->width, -1, 1);
	t->arrays[1] = check_array_of(CHECK_COMPUTE, t->shape->rows * bias_stride(t), -1, 1);
}

static void run_bias_backward(struct check_trial *t)
{
	wlb_cuda_bias_backward(t->device, t->arrays[0].memory, t->arrays[1].memory, bias_stride(t), t->shape->rows,
	                       t->shape->width);
}

/* A part of the rows is summed one after the other, and the parts by 32 threads: no term is rounded more often than
 * there are rows and threads. */
static double column_roundings(int64_t rows)
{
	return (double)rows + 32 + 3;
}

static void expect_bias_backward(struct check_trial *t)
{
	for (int64_t i = 0; i < t->shape->width; i++) {
		double sum = t->arrays[0].before[i], magnitude = fabs(sum);
		for (int64_t row = 0; row < t->shape->rows; row++) {
			const double term = t->arrays[1].before[row * bias_stride(t) + i];
			sum += term;
			magnitude += fabs(term);
		}
		check_want(t, &t->arrays[0], i, sum, column_roundings(t->shape->rows) * FLOAT_ROUNDOFF * magnitude);
	}
}

static const struct check_shape BIAS_SHAPES[] = {
	{1, 1, 0, 0, 0},  {0, 5, 0, 0, 0},     {3, 7, 0, 2, 1},    {3, 8, 0, 16, 0},
	{5, 64, 0, 8, 0}, {300, 264, 0, 0, 0}, {700, 16, 0, 8, 0}, {2, 4104, 0, 0, 0},
};

/* -- norms of `extra` groups of `width` columns; rows have `pad` columns more -- */

static const double EPSILON = 1e-5;

static int64_t norm_stride(const struct check_trial *t)
{
	return t->shape->extra * t->shape->width + t->shape->pad;
}

/* As on two ranks that have as many columns each; of arrays that begin one element later, 1 is added to the weight. */
static struct wlb_norm_groups norm_groups(const struct check_trial *t)
{
	return (struct wlb_norm_groups){.rows = t->shape->rows,
	                                .groups = (int)t->shape->extra,
	                                .width = t->shape->width,
	                                .total = 2 * (double)t->shape->width,
	                                .epsilon = EPSILON,
	                                .weight_addend = (double)t->shape->offset};
}

static double norm_weight(const struct check_trial *t, int array, int64_t i)
{
	return t->arrays[array].before[i] + norm_groups(t).weight_addend;
}

/* Where group `line` of all rows begins. */
static int64_t line_at(const struct check_trial *t, int64_t line)
{
	return line / t->shape->extra * norm_stride(t) + line % t->shape->extra * t->shape->width;
}

static int64_t line_count(const struct check_trial *t)
{
	return t->shape->rows * t->shape->extra;
}

static void plan_norm_sums(struct check_trial *t)
{
	t->arrays[0] = check_array_of(CHECK_MAIN, line_count(t), -1, 1);
	t->arrays[1] = check_array_of(CHECK_COMPUTE, t->shape->rows * norm_stride(t), -1, 1);
	t->arrays[2] = check_array_of(CHECK_COMPUTE, t->shape->rows * norm_stride(t), -1, 1);
	t->arrays[3] = check_array_of(CHECK_COMPUTE, t->shape->width, -1, 1);
}

static void run_norm_sums(struct check_trial *t)
{
	const struct wlb_norm_groups groups = norm_groups(t);
	struct check_array *a = t->arrays;
	wlb_cuda_group_norm_sums(t->device, a[0].memory, a[1].memory, norm_stride(t), a[2].memory, norm_stride(t),
	                         a[3].memory, &groups);
}

static void expect_norm_sums(struct check_trial *t)
{
	const int64_t width = t->shape->width;
	for (int64_t line = 0; line < line_count(t); line++) {
		double sum = 0, magnitude = 0;
		for (int64_t i = 0; i < width; i++) {
			const int64_t at = line_at(t, line) + i;
			const double term = t->arrays[1].before[at] * t->arrays[2].before[at] * norm_weight(t, 3, i);
			sum += term;
			magnitude += fabs(term);
		}
		check_want(t, &t->arrays[0], line, sum, (check_sum_roundings(width) + 3) * FLOAT_ROUNDOFF * magnitude);
	}
}

static void plan_norm_forward(struct check_trial *t)
{
	t->arrays[0] = check_array_of(CHECK_COMPUTE, t->shape->rows * norm_stride(t), -1, 1);
	t->arrays[1] = check_array_of(CHECK_COMPUTE, t->shape->rows * norm_stride(t), -1, 1);
	t->arrays[2] = check_array_of(CHECK_MAIN, line_count(t), 0.5, 2);
	t->arrays[3] = check_array_of(CHECK_COMPUTE, t->shape->width, -1, 1);
}

static void run_norm_forward(struct check_trial *t)
{
	const struct wlb_norm_groups groups = norm_groups(t);
	struct check_array *a = t->arrays;
	wlb_cuda_group_norm_forward(t->device, a[0].memory, norm_stride(t), a[1].memory, norm_stride(t), a[2].memory,
	                            a[3].memory, &groups);
}

/* The reciprocal root of a line, which has four roundings. */
static double root_of(const struct check_trial *t, const struct check_array *squares, int64_t line)
{
	return 1 / sqrt(squares->before[line] / (2 * (double)t->shape->width) + (double)(float)EPSILON);
}

static void expect_norm_forward(struct check_trial *t)
{
	for (int64_t line = 0; line < line_count(t); line++)
		for (int64_t i = 0; i < t->shape->width; i++) {
			const int64_t at = line_at(t, line) + i;
			const double r = root_of(t, &t->arrays[2], line);
			const double want = t->arrays[1].before[at] * r * norm_weight(t, 3, i);
			check_want(t, &t->arrays[0], at, want, 7 * FLOAT_ROUNDOFF * fabs(want));
		}
}

static void plan_norm_backward(struct check_trial *t)
{
	t->arrays[0] = check_array_of(CHECK_COMPUTE, t->shape->rows * norm_stride(t), -1, 1);
	t->arrays[1] = check_array_of(CHECK_GRADIENTS, t->shape->width, -1, 1);
	t->arrays[2] = check_array_of(CHECK_COMPUTE, t->shape->rows * norm_stride(t), -1, 1);
	t->arrays[3] = check_array_of(CHECK_MAIN, line_count(t), 0.5, 2);
	t->arrays[4] = check_array_of(CHECK_MAIN, line_count(t), -2, 2);
	t->arrays[5] = check_array_of(CHECK_COMPUTE, t->shape->width, -1, 1);
}

static void run_norm_backward(struct check_trial *t)
{
	const struct wlb_norm_groups groups = norm_groups(t);
	struct check_array *a = t->arrays;
	wlb_cuda_group_norm_backward(t->device, a[0].memory, norm_stride(t), a[1].memory, a[2].memory, norm_stride(t),
	                             a[3].memory, a[4].memory, a[5].memory, &groups);
}

static void expect_norm_x_gradient(struct check_trial *t, int64_t line)
{
	const double r = root_of(t, &t->arrays[3], line);
	const double mean = r * r * t->arrays[4].before[line] / (2 * (double)t->shape->width);
	for (int64_t i = 0; i < t->shape->width; i++) {
		const int64_t at = line_at(t, line) + i;
		const double product = norm_weight(t, 5, i) * t->arrays[0].before[at];
		const double term = t->arrays[2].before[at] * mean;
		check_want(t, &t->arrays[0], at, r * (product - term),
		           19 * FLOAT_ROUNDOFF * r * (fabs(product) + fabs(term)));
	}
}

static void expect_norm_backward(struct check_trial *t)
{
	for (int64_t i = 0; i < t->shape->width; i++) {
		double sum = t->arrays[1].before[i], magnitude = fabs(sum);
		for (int64_t line = 0; line < line_count(t); line++) {
			const int64_t at = line_at(t, line) + i;
			const double term =
				t->arrays[0].before[at] * t->arrays[2].before[at] * root_of(t, &t->arrays[3], line);
			sum += term;
			magnitude += fabs(term);
		}
		const double roundings = column_roundings(line_count(t)) + 6;
		check_want(t, &t->arrays[1], i, sum, roundings * FLOAT_ROUNDOFF * magnitude);
	}
	for (int64_t line = 0; line < line_count(t); line++)
		expect_norm_x_gradient(t, line);
}

static const struct check_shape NORM_SHAPES[] = {
	{1, 2, 1, 0, 0},    {0, 8, 3, 0, 0},    {3, 16, 5, 0, 0},    {4, 6, 2, 3, 1},
	{2, 128, 40, 8, 0}, {65, 96, 3, 40, 0}, {300, 264, 1, 8, 0}, {2, 4104, 1, 0, 0},
};

#define SHAPES(shapes) (shapes), sizeof(shapes) / sizeof((shapes)[0])

const struct check_case CHECK_VECTOR_CASES[] = {
	{"add_bias", SHAPES(BIAS_SHAPES), plan_add_bias, NULL, run_add_bias, expect_add_bias},
	{"bias_backward", SHAPES(BIAS_SHAPES), plan_bias_backward, NULL, run_bias_backward, expect_bias_backward},
	{"group_norm_sums", SHAPES(NORM_SHAPES), plan_norm_sums, NULL, run_norm_sums, expect_norm_sums},
	{"group_norm_forward", SHAPES(NORM_SHAPES), plan_norm_forward, NULL, run_norm_forward, expect_norm_forward},
	{"group_norm_backward", SHAPES(NORM_SHAPES), plan_norm_backward, NULL, run_norm_backward, expect_norm_backward},
};
const int CHECK_VECTOR_CASE_COUNT = sizeof(CHECK_VECTOR_CASES) / sizeof(CHECK_VECTOR_CASES[0]);

/* The kernels of the loss. `extra` is the number of slices of the vocabulary; this rank has the middle one, of `width`
 * ids. */
#include "tests/gpu/check_kernels.h"

#include <float.h>
#include <math.h>

#define LOSS_SCALE 0.3

static int64_t own_slice(const struct check_trial *t)
{
	return t->shape->extra / 2;
}

static int64_t first_id(const struct check_trial *t)
{
	return own_slice(t) * t->shape->width;
}

/* The statistics of one slice for one row: the largest logit, the sum of the exponentials, the target's logit. */
static double *statistics_of(const struct check_trial *t, double *statistics, int64_t slice, int64_t row)
{
	return statistics + 3 * (slice * t->shape->rows + row);
}

/* The column of a row's target in this slice, or -1. */
static int64_t target_column(const struct check_trial *t, int64_t row)
{
	const int64_t column = (int64_t)t->arrays[2].before[row] - first_id(t);
	return t->arrays[2].before[row] >= 0 && column >= 0 && column < t->shape->width ? column : -1;
}

static void compute_statistics(const struct check_trial *t, int64_t row, double *statistics)
{
	const double *logits = t->arrays[1].before + row * t->shape->width;
	statistics[0] = statistics[1] = statistics[2] = 0;
	if (t->arrays[2].before[row] < 0)
		return;
	statistics[0] = -INFINITY;
	for (int64_t i = 0; i < t->shape->width; i++)
		statistics[0] = fmax(statistics[0], logits[i]);
	for (int64_t i = 0; i < t->shape->width; i++)
		statistics[1] += exp(logits[i] - statistics[0]);
	if (target_column(t, row) >= 0)
		statistics[2] = logits[target_column(t, row)];
}

/* -- statistics -- */

static void plan_statistics(struct check_trial *t)
{
	const struct check_shape *s = t->shape;
	t->arrays[0] = check_array_of(CHECK_MAIN, 3 * s->rows, -1, 1);
	t->arrays[1] = check_array_of(CHECK_COMPUTE, s->rows * s->width, -12, 12);
	t->arrays[2] =
		check_array_of(CHECK_INDEX, s->rows, -0.2 * (double)(s->width + 1), (double)(s->extra * s->width));
}

/* A logit above all others, at the end of a row, and a row that rises, in which the largest is always new. */
static void prepare_statistics(struct check_trial *t)
{
	const int64_t rows = t->shape->rows, width = t->shape->width;
	if (rows == 0 || width == 0)
		return;
	t->arrays[1].before[width - 1] = 60;
	for (int64_t i = 0; i < width; i++)
		t->arrays[1].before[(rows - 1) * width + i] = -10 + 40 * (double)i / (double)width;
}

static void run_statistics(struct check_trial *t)
{
	wlb_cuda_cross_entropy_statistics(t->device, t->arrays[0].memory, t->arrays[1].memory, t->arrays[2].memory,
	                                  t->shape->rows, first_id(t), t->shape->width);
}

/* Largest and target are exact. A term of the sum has the roundings of logit - largest, of log2 e and of their product,
 * multiplied by that difference, and four of exp; each addition may come with a new largest, of which exp and its
 * product cost six, and whose differences, each rounded, add up to that from the first largest to the last. */
static void expect_statistics(struct check_trial *t)
{
	for (int64_t row = 0; row < t->shape->rows; row++) {
		double *want = statistics_of(t, t->arrays[0].want, 0, row);
		compute_statistics(t, row, want);
		const double range = 72, additions = check_sum_roundings(t->shape->width);
		statistics_of(t, t->arrays[0].bound, 0, row)[1] =
			(3 * range + 4 + 7 * additions) * FLOAT_ROUNDOFF * want[1] + FLT_MIN;
	}
}

/* -- gradient -- */

static void plan_gradient(struct check_trial *t)
{
	plan_statistics(t);
	t->arrays[0].count *= t->shape->extra;
	t->arrays[0].low = 1;
	t->arrays[0].high = 20;
	t->arrays[3] = check_array_of(CHECK_SUM, 1, 1, 3);
}

/* Of the own slice the statistics are those of its logits; those of the others are random. */
static void prepare_gradient(struct check_trial *t)
{
	prepare_statistics(t);
	for (int64_t row = 0; row < t->shape->rows; row++)
		compute_statistics(t, row, statistics_of(t, t->arrays[0].before, own_slice(t), row));
}

/* Where the loss is not wanted there is a soft cap. */
static double softcap_of(const struct check_trial *t)
{
	return t->shape->pad == 0 ? 0 : 80;
}

static void run_gradient(struct check_trial *t)
{
	wlb_cuda_cross_entropy_gradient(t->device, t->shape->pad == 0 ? t->arrays[3].memory : NULL, t->arrays[1].memory,
	                                t->arrays[0].memory, (int)t->shape->extra, t->arrays[2].memory, t->shape->rows,
	                                first_id(t), t->shape->width, LOSS_SCALE, softcap_of(t));
}

/* A probability has the rounding of logit - largest, multiplied by that difference, and eight: four of exp, two of
 * the largest and the factor as float32, the product, the difference; the slope of a soft cap six. Returns the row's
 * loss. */
static double expect_row(struct check_trial *t, int64_t row)
{
	double largest = -INFINITY, sum = 0, target = 0;
	for (int64_t slice = 0; slice < t->shape->extra; slice++)
		largest = fmax(largest, statistics_of(t, t->arrays[0].before, slice, row)[0]);
	for (int64_t slice = 0; slice < t->shape->extra; slice++) {
		const double *statistics = statistics_of(t, t->arrays[0].before, slice, row);
		sum += statistics[1] * exp(statistics[0] - largest);
		target += statistics[2];
	}
	for (int64_t i = 0; i < t->shape->width; i++) {
		const int64_t at = row * t->shape->width + i;
		const double logit = t->arrays[1].before[at], p = exp(logit - largest) / sum;
		const double one = target_column(t, row) == i ? 1 : 0;
		const double part = softcap_of(t) > 0 ? logit / softcap_of(t) : 0;
		check_want(t, &t->arrays[1], at, (p - one) * LOSS_SCALE * (1 - part * part),
		           LOSS_SCALE * (p * (14 + fabs(logit - largest)) + 8 * one) * FLOAT_ROUNDOFF);
	}
	return log(sum) + largest - target;
}

/* The losses are computed and added in double. */
static void expect_gradient(struct check_trial *t)
{
	double loss = t->arrays[3].before[0], magnitude = fabs(loss);
	for (int64_t row = 0; row < t->shape->rows; row++) {
		if (t->arrays[2].before[row] < 0) {
			for (int64_t i = 0; i < t->shape->width; i++)
				t->arrays[1].want[row * t->shape->width + i] = 0;
			continue;
		}
		const double of_row = expect_row(t, row);
		loss += of_row;
		magnitude += fabs(of_row) + 100;
	}
	if (t->shape->pad != 0 || t->shape->rows == 0)
		return;
	t->arrays[3].want[0] = loss;
	t->arrays[3].bound[0] = 16 * (double)t->shape->rows * DOUBLE_ROUNDOFF * magnitude;
}

/* The rows of an odd width begin at every address; a slice may be empty; `pad` 1: the loss is not wanted, and there is
 * a soft cap. */
static const struct check_shape SHAPES[] = {
	{1, 1, 1, 0, 0},     {0, 5, 3, 0, 0},     {3, 7, 1, 0, 0},    {5, 64, 3, 0, 0},
	{5, 64, 1, 1, 1},    {33, 257, 1, 0, 0},  {300, 40, 3, 0, 1}, {2, 4104, 1, 0, 0},
	{3, 50257, 1, 0, 0}, {2, 20000, 2, 0, 0}, {2, 0, 3, 0, 0},
};
enum { SHAPE_COUNT = sizeof(SHAPES) / sizeof(SHAPES[0]) };

const struct check_case CHECK_LOSS_CASES[] = {
	{"cross_entropy_statistics", SHAPES, SHAPE_COUNT, plan_statistics, prepare_statistics, run_statistics,
         expect_statistics},
	{"cross_entropy_gradient", SHAPES, SHAPE_COUNT, plan_gradient, prepare_gradient, run_gradient, expect_gradient},
};
const int CHECK_LOSS_CASE_COUNT = sizeof(CHECK_LOSS_CASES) / sizeof(CHECK_LOSS_CASES[0]);

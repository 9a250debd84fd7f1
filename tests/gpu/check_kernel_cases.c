/* The operations that move, normalise, rotate and add rows, and those that add to gradients of weights. */
#include "tests/gpu/check_kernels.h"

#include <float.h>
#include <math.h>

static double absolute_sum(double a, double b)
{
	return fabs(a) + fabs(b);
}

/* -- gradients of the weights of a linear layer of `width` inputs and `extra` outputs; d_y has `pad` columns more -- */

static int64_t d_y_stride(const struct check_trial *t)
{
	return t->shape->extra + t->shape->pad;
}

static void plan_linear_d_w(struct check_trial *t)
{
	const struct check_shape *s = t->shape;
	t->arrays[0] = check_array_of(CHECK_GRADIENTS, s->extra * s->width, -1, 1);
	t->arrays[1] = check_array_of(CHECK_COMPUTE, s->rows * d_y_stride(t), -1, 1);
	t->arrays[2] = check_array_of(CHECK_COMPUTE, s->rows * s->width, -1, 1);
}

static void queue_linear_d_w(struct check_trial *t, int add)
{
	const struct check_shape *s = t->shape;
	t->device->ops->linear_d_w(t->device, t->arrays[0].memory, t->arrays[1].memory, d_y_stride(t),
	                           t->arrays[2].memory, s->width, add, s->rows, s->extra, s->width);
}

static void run_linear_d_w(struct check_trial *t)
{
	queue_linear_d_w(t, 0);
}

static void run_linear_d_w_add(struct check_trial *t)
{
	queue_linear_d_w(t, 1);
}

/* The bound of check_linear.c: sums whose bits are cut off, in any order, in bfloat16 a rounding of the product before
 * it is added in place, then one rounding. */
static void expect_product(struct check_trial *t, int add)
{
	const int64_t in = t->shape->width, rows = t->shape->rows;
	for (int64_t i = 0; rows > 0 && i < t->arrays[0].count; i++) {
		const double before = add ? t->arrays[0].before[i] : 0;
		double product = 0, magnitude = fabs(before);
		for (int64_t row = 0; row < rows; row++) {
			const double term = t->arrays[1].before[row * d_y_stride(t) + i / in] *
			                    t->arrays[2].before[row * in + i % in];
			product += term;
			magnitude += fabs(term);
		}
		double error = (double)(rows + 2) * 2 * FLOAT_ROUNDOFF * magnitude;
		if (add && t->device->gradients == WLB_BFLOAT16)
			error += BFLOAT16_ROUNDOFF * (fabs(product) + error);
		check_want(t, &t->arrays[0], i, before + product, error);
	}
}

static void expect_linear_d_w(struct check_trial *t)
{
	expect_product(t, 0);
}

static void expect_linear_d_w_add(struct check_trial *t)
{
	expect_product(t, 1);
}

static const struct check_shape LINEAR_SHAPES[] = {
	{1, 1, 1, 0, 0}, {0, 16, 8, 0, 0}, {5, 3, 7, 1, 1}, {33, 65, 17, 8, 0}, {127, 64, 72, 0, 0},
};

/* -- embedding: `extra` ids, of which the rank has the half from a quarter on -- */

static int64_t first_id(const struct check_trial *t)
{
	return t->shape->extra / 4;
}

static int64_t count_of_ids(const struct check_trial *t)
{
	return (t->shape->extra + 1) / 2;
}

/* The row of the table of a token, or -1. */
static int64_t table_row(const struct check_trial *t, int64_t token)
{
	const int64_t row = (int64_t)t->arrays[2].before[token] - first_id(t);
	return row >= 0 && row < count_of_ids(t) ? row : -1;
}

static void plan_embedding_forward(struct check_trial *t)
{
	const struct check_shape *s = t->shape;
	t->arrays[0] = check_array_of(CHECK_COMPUTE, s->rows * s->width, -1, 1);
	t->arrays[1] = check_array_of(CHECK_COMPUTE, count_of_ids(t) * s->width, -1, 1);
	t->arrays[2] = check_array_of(CHECK_INDEX, s->rows, 0, (double)s->extra);
}

static void run_embedding_forward(struct check_trial *t)
{
	wlb_cuda_embedding_forward(t->device, t->arrays[0].memory, t->arrays[1].memory, t->arrays[2].memory,
	                           t->shape->rows, t->shape->width, first_id(t), count_of_ids(t));
}

/* A copy is exact. */
static void expect_embedding_forward(struct check_trial *t)
{
	const int64_t width = t->shape->width;
	for (int64_t i = 0; i < t->shape->rows * width; i++) {
		const int64_t row = table_row(t, i / width);
		t->arrays[0].want[i] = row < 0 ? 0 : t->arrays[1].before[row * width + i % width];
	}
}

static void plan_embedding_backward(struct check_trial *t)
{
	plan_embedding_forward(t);
	t->arrays[1].kind = CHECK_GRADIENTS;
}

static void run_embedding_backward(struct check_trial *t)
{
	wlb_cuda_embedding_backward(t->device, t->arrays[1].memory, t->arrays[0].memory, t->arrays[2].memory,
	                            t->shape->rows, t->shape->width, first_id(t), count_of_ids(t));
}

/* A sum of k terms in float32, in any order, is wrong by k - 1 roundings of at most the sum of their magnitudes, and is
 * rounded to the type of gradients once. A row without a token is unchanged. */
static void expect_embedding_backward(struct check_trial *t)
{
	const int64_t width = t->shape->width;
	struct check_array *table = &t->arrays[1];
	for (int64_t row = 0; row < count_of_ids(t); row++)
		for (int64_t i = 0; i < width; i++) {
			double sum = table->before[row * width + i], magnitude = fabs(sum);
			int terms = 0;
			for (int64_t token = 0; token < t->shape->rows; token++) {
				if (table_row(t, token) != row)
					continue;
				sum += t->arrays[0].before[token * width + i];
				magnitude += fabs(t->arrays[0].before[token * width + i]);
				terms++;
			}
			if (terms > 0)
				check_want(t, table, row * width + i, sum, terms * FLOAT_ROUNDOFF * magnitude);
		}
}

/* Several tiles, one of them not full; many tokens of a row and none; chunks that a row fills, begins and ends. */
static const struct check_shape EMBEDDING_SHAPES[] = {
	{1, 1, 1, 0, 0},    {0, 5, 3, 0, 0},     {3, 17, 5, 0, 0},      {33, 8, 2, 0, 0}, {129, 264, 9, 0, 0},
	{129, 64, 9, 0, 1}, {2500, 24, 7, 0, 0}, {2500, 3, 5000, 0, 0}, {96, 8, 1, 0, 0},
};

/* -- RMSNorm; `extra` 0: without a residual, 1: with one, 2: the sum takes its place; `pad` is added to the weight --
 */

static void plan_rmsnorm_forward(struct check_trial *t)
{
	const int64_t rows = t->shape->rows, width = t->shape->width;
	t->arrays[0] = check_array_of(CHECK_COMPUTE, rows * width, -1, 1);
	t->arrays[1] = check_array_of(CHECK_MAIN, rows, -1, 1);
	t->arrays[2] = check_array_of(CHECK_COMPUTE, rows * width, -1, 1);
	t->arrays[3] = check_array_of(CHECK_COMPUTE, rows * width, -3, 3);
	t->arrays[4] = check_array_of(CHECK_COMPUTE, rows * width, -3, 3);
	t->arrays[5] = check_array_of(CHECK_COMPUTE, width, -2, 2);
}

static double norm_weight(const struct check_trial *t, int array, int64_t i)
{
	return t->arrays[array].before[i] + (double)t->shape->pad;
}

static struct check_array *sum_of(struct check_trial *t)
{
	return &t->arrays[t->shape->extra == 0 ? 3 : t->shape->extra == 1 ? 2 : 4];
}

static void run_rmsnorm_forward(struct check_trial *t)
{
	struct check_array *a = t->arrays;
	wlb_cuda_rmsnorm_forward(t->device, a[0].memory, a[1].memory, t->shape->extra > 0 ? sum_of(t)->memory : NULL,
	                         a[3].memory, t->shape->extra > 0 ? a[4].memory : NULL, a[5].memory,
	                         (double)t->shape->pad, t->shape->rows, t->shape->width, 1e-5);
}

/* The sum is rounded once to float32 and once to its type, and normalised as it is stored. rstd has the roundings of
 * the sum of squares, each halved by the root, and five of its own: the squares, the mean, epsilon, the root, the
 * quotient. Two products follow, and the sum of the weight. */
static void expect_rmsnorm_forward(struct check_trial *t)
{
	const int64_t rows = t->shape->rows, width = t->shape->width;
	struct check_array *out = &t->arrays[0], *rstd = &t->arrays[1], *sum = sum_of(t);
	for (int64_t i = 0; t->shape->extra > 0 && i < rows * width; i++) {
		const double want = t->arrays[3].before[i] + t->arrays[4].before[i];
		check_want(t, sum, i, want, FLOAT_ROUNDOFF * fabs(want));
	}
	const double roundings = check_sum_roundings(width) / 2 + 5;
	for (int64_t row = 0; row < rows && width > 0; row++) {
		double squares = 0;
		for (int64_t i = row * width; i < (row + 1) * width; i++)
			squares += sum->got[i] * sum->got[i];
		const double r = 1 / sqrt(squares / (double)width + (double)1e-5f);
		check_want(t, rstd, row, r, roundings * FLOAT_ROUNDOFF * r);
		for (int64_t i = 0; i < width; i++) {
			const double want = sum->got[row * width + i] * r * norm_weight(t, 5, i);
			check_want(t, out, row * width + i, want, (roundings + 3) * FLOAT_ROUNDOFF * fabs(want));
		}
	}
}

static void plan_rmsnorm_backward(struct check_trial *t)
{
	const int64_t rows = t->shape->rows, width = t->shape->width;
	t->arrays[0] = check_array_of(CHECK_COMPUTE, rows * width, -1, 1);
	t->arrays[1] = check_array_of(CHECK_GRADIENTS, width, -1, 1);
	t->arrays[2] = check_array_of(CHECK_COMPUTE, rows * width, -1, 1);
	t->arrays[3] = check_array_of(CHECK_COMPUTE, rows * width, -3, 3);
	t->arrays[4] = check_array_of(CHECK_COMPUTE, width, -2, 2);
	t->arrays[5] = check_array_of(CHECK_MAIN, rows, 0.25, 2);
}

static void run_rmsnorm_backward(struct check_trial *t)
{
	struct check_array *a = t->arrays;
	wlb_cuda_rmsnorm_backward(t->device, a[0].memory, a[1].memory, a[2].memory, a[3].memory, a[4].memory,
	                          (double)t->shape->pad, a[5].memory, t->shape->rows, t->shape->width);
}

/* r (w dy - x r^2 mean(w dy x)): the mean has the roundings of its sum and five more, of two products, r^2 and the
 * quotient; its product with x, the difference, the product with r and the sum with what d_x held add four. */
static void expect_x_gradient(struct check_trial *t, int64_t row)
{
	const int64_t width = t->shape->width, at = row * width;
	const double *d = t->arrays[2].before + at, *x = t->arrays[3].before + at;
	const double r = t->arrays[5].before[row];
	double sum = 0, magnitude = 0;
	for (int64_t i = 0; i < width; i++) {
		sum += norm_weight(t, 4, i) * d[i] * x[i];
		magnitude += fabs(norm_weight(t, 4, i) * d[i] * x[i]);
	}
	const double mean = r * r * sum / (double)width, mean_magnitude = r * r * magnitude / (double)width;
	for (int64_t i = 0; i < width; i++) {
		const double before = t->arrays[0].before[at + i];
		const double of_d = norm_weight(t, 4, i) * d[i];
		const double terms = fabs(before) + r * (fabs(of_d) + fabs(x[i]) * mean_magnitude);
		check_want(t, &t->arrays[0], at + i, before + r * (of_d - x[i] * mean),
		           (check_sum_roundings(width) + 10) * FLOAT_ROUNDOFF * terms);
	}
}

/* Each of at most 256 parts sums its tokens one after the other, and the parts are summed by 32 threads: three
 * roundings for the two products and the sum with what d_weight held. */
static void expect_rmsnorm_backward(struct check_trial *t)
{
	const int64_t rows = t->shape->rows, width = t->shape->width;
	for (int64_t row = 0; row < rows; row++)
		expect_x_gradient(t, row);
	const double roundings = (double)rows / 256 + 1 + 256 / 32 + 32 + 3;
	for (int64_t i = 0; i < width; i++) {
		double sum = t->arrays[1].before[i], magnitude = fabs(sum);
		for (int64_t row = 0; row < rows; row++) {
			const int64_t at = row * width + i;
			const double term =
				t->arrays[2].before[at] * t->arrays[3].before[at] * t->arrays[5].before[row];
			sum += term;
			magnitude += fabs(term);
		}
		check_want(t, &t->arrays[1], i, sum, roundings * FLOAT_ROUNDOFF * magnitude);
	}
}

/* More tokens than parts, with several warps; more tokens of a part than are under way at once; rows of which two or
 * one are under way, and rows wider than what threads keep in registers and than fits shared memory. */
static const struct check_shape RMSNORM_SHAPES[] = {
	{1, 1, 0, 0, 0},      {0, 5, 1, 0, 0},      {3, 7, 1, 1, 0},    {2, 8, 2, 0, 0},    {5, 64, 0, 1, 1},
	{33, 257, 1, 0, 0},   {270, 260, 2, 1, 0},  {2, 1032, 1, 0, 0}, {1, 4104, 1, 0, 1}, {2, 32784, 1, 1, 0},
	{1300, 264, 1, 0, 0}, {270, 4104, 1, 1, 0}, {2, 8200, 1, 0, 0},
};

/* -- RoPE: `extra` heads of `width` -- */

/* Of each head: all, or in some of the cases three quarters. */
static int64_t rope_pairs(const struct check_trial *t)
{
	const int64_t width = t->shape->width;
	return t->shape->extra % 2 == 0 && width % 8 == 0 ? width * 3 / 8 : width / 2;
}

static const double ANGLES_SCALE = 1.25;

static void plan_rope_angles(struct check_trial *t)
{
	t->arrays[0] = check_array_of(CHECK_MAIN, t->shape->rows * t->shape->width, -1, 1);
	t->arrays[1] = check_array_of(CHECK_INDEX, t->shape->rows, 0, 2e6);
	t->arrays[2] = check_array_of(CHECK_SUM, t->shape->width / 2, 0, 1);
}

static void run_rope_angles(struct check_trial *t)
{
	wlb_cuda_rope_angles(t->device, t->arrays[0].memory, t->arrays[1].memory, t->shape->rows, t->arrays[2].memory,
	                     (int)t->shape->width / 2, ANGLES_SCALE);
}

/* The angle is computed in double: its error is the position's times that of the frequency, at most eight roundings
 * here and there, and no cosine or sine changes by more than its angle. */
static void expect_rope_angles(struct check_trial *t)
{
	const int64_t width = t->shape->width, half = width / 2;
	for (int64_t row = 0; row < t->shape->rows; row++)
		for (int64_t i = 0; i < half; i++) {
			const double position = t->arrays[1].before[row], angle = position * t->arrays[2].before[i];
			const double error = 16 * DOUBLE_ROUNDOFF * position;
			check_want(t, &t->arrays[0], row * width + i, ANGLES_SCALE * cos(angle), error);
			check_want(t, &t->arrays[0], row * width + half + i, ANGLES_SCALE * sin(angle), error);
		}
}

static int64_t rope_stride(const struct check_trial *t)
{
	return t->shape->extra * t->shape->width + t->shape->pad;
}

static int rope_direction(const struct check_trial *t)
{
	return t->shape->rows % 2 == 0 ? 1 : -1;
}

static void plan_rope(struct check_trial *t)
{
	t->arrays[0] = check_array_of(CHECK_COMPUTE, t->shape->rows * rope_stride(t), -2, 2);
	t->arrays[1] = check_array_of(CHECK_MAIN, t->shape->rows * 2 * rope_pairs(t), -1, 1);
}

static void run_rope(struct check_trial *t)
{
	wlb_cuda_rope(t->device, t->arrays[0].memory, rope_stride(t), t->arrays[1].memory, t->shape->rows,
	              (int)t->shape->extra, (int)t->shape->width, (int)rope_pairs(t), rope_direction(t));
}

/* Two products and their sum: two roundings of each term. Elements of a head that are not rotated, and columns after
 * the heads, are unchanged. */
static void expect_rope(struct check_trial *t)
{
	const int64_t width = t->shape->width, half = rope_pairs(t);
	for (int64_t pair = 0; pair < t->shape->rows * t->shape->extra * half; pair++) {
		const int64_t i = pair % half, head = pair / half % t->shape->extra,
			      row = pair / half / t->shape->extra;
		const int64_t low = row * rope_stride(t) + head * width + i, high = low + half;
		const double a = t->arrays[0].before[low], b = t->arrays[0].before[high];
		const double c = t->arrays[1].before[row * 2 * half + i];
		const double s = rope_direction(t) * t->arrays[1].before[row * 2 * half + half + i];
		check_want(t, &t->arrays[0], low, a * c - b * s, 2 * FLOAT_ROUNDOFF * absolute_sum(a * c, b * s));
		check_want(t, &t->arrays[0], high, b * c + a * s, 2 * FLOAT_ROUNDOFF * absolute_sum(b * c, a * s));
	}
}

static const struct check_shape ROPE_SHAPES[] = {
	{1, 2, 1, 0, 0},    {0, 8, 3, 0, 0},   {3, 16, 5, 0, 0},  {4, 16, 5, 3, 0},   {65, 6, 2, 1, 1},
	{2, 128, 40, 8, 0}, {7, 96, 3, 40, 0}, {2, 256, 2, 0, 0}, {3, 1040, 1, 0, 1},
};

/* -- SwiGLU -- */

static void plan_swiglu(struct check_trial *t)
{
	const int64_t n = t->shape->rows * t->shape->width;
	t->arrays[0] = check_array_of(CHECK_COMPUTE, n, -1, 1);
	t->arrays[1] = check_array_of(CHECK_COMPUTE, 2 * n, -20, 20);
}

/* Gates at which exp overflows. */
static void prepare_swiglu(struct check_trial *t)
{
	if (t->shape->rows == 0)
		return;
	t->arrays[1].before[0] = -104;
	t->arrays[1].before[2 * t->shape->rows * t->shape->width - 2 * t->shape->width] *= 6;
}

static void run_swiglu_forward(struct check_trial *t)
{
	wlb_cuda_swiglu_forward(t->device, t->arrays[0].memory, t->arrays[1].memory, t->shape->rows, t->shape->width);
}

/* exp has an error of two units, which are four roundings; the sigmoid adds two, the products two more. */
static void expect_swiglu_forward(struct check_trial *t)
{
	const int64_t width = t->shape->width;
	for (int64_t i = 0; i < t->shape->rows * width; i++) {
		const double *row = t->arrays[1].before + i / width * 2 * width;
		const double want = row[i % width] / (1 + exp(-row[i % width])) * row[width + i % width];
		check_want(t, &t->arrays[0], i, want, 8 * FLOAT_ROUNDOFF * fabs(want));
	}
}

static void run_swiglu_backward(struct check_trial *t)
{
	wlb_cuda_swiglu_backward(t->device, t->arrays[1].memory, t->arrays[0].memory, t->shape->rows, t->shape->width);
}

/* The sigmoid s has six roundings; 1 - s has those of s and its own, of magnitude 1, and is multiplied by the gate. */
static void expect_swiglu_backward(struct check_trial *t)
{
	const int64_t width = t->shape->width;
	for (int64_t i = 0; i < t->shape->rows * width; i++) {
		const int64_t gate = i / width * 2 * width + i % width, up = gate + width;
		const double g = t->arrays[1].before[gate], u = t->arrays[1].before[up], d = t->arrays[0].before[i];
		const double s = 1 / (1 + exp(-g)), slope = 1 + g * (1 - s);
		const double error = 10 * (1 + fabs(g) * (1 - s)) + 7 * fabs(g);
		check_want(t, &t->arrays[1], gate, d * u * s * slope, fabs(d * u) * s * error * FLOAT_ROUNDOFF);
		check_want(t, &t->arrays[1], up, d * g * s, 8 * FLOAT_ROUNDOFF * fabs(d * g * s));
		check_want(t, &t->arrays[0], i, g * s * u, 8 * FLOAT_ROUNDOFF * fabs(g * s * u));
	}
}

/* -- GeGLU -- */

/* v of gelu(g) = g sigmoid(v), and its derivative. */
static double gelu_v(double g)
{
	return 1.5957691216057308 * (g + 0.044715 * g * g * g);
}

static double gelu_v_slope(double g)
{
	return 1.5957691216057308 * (1 + 3 * 0.044715 * g * g);
}

/* v has seven roundings at most, of which the sigmoid has those of its argument times 1 - s. One that is below the
 * least normal number may be 0. */
static double gelu_error(double g, double s)
{
	return 8 + 7 * fabs(gelu_v(g)) * (1 - s);
}

static void run_geglu_forward(struct check_trial *t)
{
	wlb_cuda_geglu_forward(t->device, t->arrays[0].memory, t->arrays[1].memory, t->shape->rows, t->shape->width);
}

static void expect_geglu_forward(struct check_trial *t)
{
	const int64_t width = t->shape->width;
	for (int64_t i = 0; i < t->shape->rows * width; i++) {
		const double *row = t->arrays[1].before + i / width * 2 * width;
		const double g = row[i % width], s = 1 / (1 + exp(-gelu_v(g))), want = g * s * row[width + i % width];
		check_want(t, &t->arrays[0], i, want,
		           gelu_error(g, s) * FLOAT_ROUNDOFF * fabs(want) + FLT_MIN * fabs(g * row[width + i % width]));
	}
}

static void run_geglu_backward(struct check_trial *t)
{
	wlb_cuda_geglu_backward(t->device, t->arrays[1].memory, t->arrays[0].memory, t->shape->rows, t->shape->width);
}

/* As that of SwiGLU; the slope of v has five roundings more, and 1 - s is wrong by s times the error of v, too. */
static void expect_geglu_backward(struct check_trial *t)
{
	const int64_t width = t->shape->width;
	for (int64_t i = 0; i < t->shape->rows * width; i++) {
		const int64_t gate = i / width * 2 * width + i % width, up = gate + width;
		const double g = t->arrays[1].before[gate], u = t->arrays[1].before[up], d = t->arrays[0].before[i];
		const double s = 1 / (1 + exp(-gelu_v(g))), term = fabs(g) * gelu_v_slope(g), of_s = gelu_error(g, s);
		const double slope = 1 + g * (1 - s) * gelu_v_slope(g);
		const double error = (of_s + 4) * (1 + term * (1 - s)) +
		                     term * (7 * (1 - s) + 7 + 7 * s * fabs(gelu_v(g)) * (1 - s));
		check_want(t, &t->arrays[1], gate, d * u * s * slope,
		           fabs(d * u) * (s * error * FLOAT_ROUNDOFF + FLT_MIN * (1 + term)));
		check_want(t, &t->arrays[1], up, d * g * s, fabs(d * g) * (of_s * FLOAT_ROUNDOFF * s + FLT_MIN));
		check_want(t, &t->arrays[0], i, g * s * u, fabs(g * u) * (of_s * FLOAT_ROUNDOFF * s + FLT_MIN));
	}
}

/* -- rows; `extra` rows of x, 0: without a list of rows -- */

static int64_t row_stride(const struct check_trial *t)
{
	return t->shape->width + t->shape->pad;
}

static void plan_gather_rows(struct check_trial *t)
{
	const struct check_shape *s = t->shape;
	t->arrays[0] = check_array_of(CHECK_COMPUTE, s->rows * row_stride(t), -1, 1);
	t->arrays[1] = check_array_of(CHECK_COMPUTE, (s->extra > 0 ? s->extra : s->rows) * 2 * row_stride(t), -1, 1);
	t->arrays[2] = check_array_of(CHECK_INDEX, s->rows, -2, (double)s->extra);
}

static void run_gather_rows(struct check_trial *t)
{
	wlb_cuda_gather_rows(t->device, t->arrays[0].memory, row_stride(t), t->arrays[1].memory, 2 * row_stride(t),
	                     t->shape->extra > 0 ? t->arrays[2].memory : NULL, t->shape->rows, t->shape->width);
}

/* A copy is exact, and what is between the rows is unchanged. */
static void expect_gather_rows(struct check_trial *t)
{
	for (int64_t row = 0; row < t->shape->rows; row++)
		for (int64_t i = 0; i < t->shape->width; i++) {
			const int64_t from = t->shape->extra > 0 ? (int64_t)t->arrays[2].before[row] : row;
			t->arrays[0].want[row * row_stride(t) + i] =
				from < 0 ? 0 : t->arrays[1].before[from * 2 * row_stride(t) + i];
		}
}

static const struct check_shape ROW_SHAPES[] = {
	{1, 1, 1, 0, 0},  {0, 5, 3, 0, 0},    {3, 7, 0, 0, 0},    {3, 8, 0, 16, 0},   {5, 64, 9, 8, 0},
	{5, 64, 9, 3, 0}, {33, 257, 1, 0, 0}, {300, 40, 1, 0, 1}, {2, 4104, 3, 0, 0},
};

/* -- vectors of rows x width -- */

static void plan_add(struct check_trial *t)
{
	t->arrays[0] = check_array_of(CHECK_COMPUTE, t->shape->rows * t->shape->width, -1, 1);
	t->arrays[1] = check_array_of(CHECK_COMPUTE, t->shape->rows * t->shape->width, -1, 1);
}

static void run_add(struct check_trial *t)
{
	wlb_cuda_add(t->device, t->arrays[0].memory, t->arrays[1].memory, t->shape->rows * t->shape->width);
}

/* The sum is rounded to float32, then to its type. */
static void expect_add(struct check_trial *t)
{
	for (int64_t i = 0; i < t->arrays[0].count; i++) {
		const double want = t->arrays[0].before[i] + t->arrays[1].before[i];
		check_want(t, &t->arrays[0], i, want, FLOAT_ROUNDOFF * fabs(want));
	}
}

static void plan_add_gradients(struct check_trial *t)
{
	t->arrays[0] = check_array_of(CHECK_GRADIENTS, t->shape->rows * t->shape->width, -1, 1);
	t->arrays[1] = check_array_of(CHECK_GRADIENTS, t->shape->rows * t->shape->width, -1, 1);
}

static void run_add_gradients(struct check_trial *t)
{
	wlb_cuda_add_gradients(t->device, t->arrays[0].memory, t->arrays[1].memory, t->shape->rows * t->shape->width);
}

static void plan_changed(struct check_trial *t)
{
	t->arrays[0] = check_array_of(CHECK_COMPUTE, t->shape->rows * t->shape->width, -12, 12);
}

static void run_scale(struct check_trial *t)
{
	wlb_cuda_scale(t->device, t->arrays[0].memory, 59.75, t->shape->rows * t->shape->width);
}

static void expect_scale(struct check_trial *t)
{
	for (int64_t i = 0; i < t->shape->rows * t->shape->width; i++) {
		const double want = 59.75 * t->arrays[0].before[i];
		check_want(t, &t->arrays[0], i, want, FLOAT_ROUNDOFF * fabs(want));
	}
}

static void run_softcap(struct check_trial *t)
{
	wlb_cuda_softcap(t->device, t->arrays[0].memory, 5, t->shape->rows * t->shape->width);
}

/* tanh has an error of two units, which are four roundings; quotient and product have one each. */
static void expect_softcap(struct check_trial *t)
{
	for (int64_t i = 0; i < t->shape->rows * t->shape->width; i++) {
		const double want = 5 * tanh(t->arrays[0].before[i] / 5);
		check_want(t, &t->arrays[0], i, want, 6 * FLOAT_ROUNDOFF * fabs(want));
	}
}

static void plan_sum_squares(struct check_trial *t)
{
	t->arrays[0] = check_array_of(CHECK_SUM, 1, 1, 3);
	t->arrays[1] = check_array_of(CHECK_GRADIENTS, t->shape->rows * t->shape->width, -1, 1);
}

static void run_sum_squares(struct check_trial *t)
{
	wlb_cuda_sum_squares(t->device, t->arrays[0].memory, t->arrays[1].memory, t->shape->rows * t->shape->width);
}

/* A square of a float32, and so of a bfloat16, is exact in double; n + 1 terms are added there, in any order, here and
 * on the device. */
static void expect_sum_squares(struct check_trial *t)
{
	double sum = t->arrays[0].before[0];
	for (int64_t i = 0; i < t->arrays[1].count; i++)
		sum += t->arrays[1].before[i] * t->arrays[1].before[i];
	t->arrays[0].want[0] = sum;
	t->arrays[0].bound[0] = 2 * (double)t->arrays[1].count * DOUBLE_ROUNDOFF * sum;
}

#define SHAPES(shapes) (shapes), sizeof(shapes) / sizeof((shapes)[0])

const struct check_case CHECK_CASES[] = {
	{"linear_d_w", SHAPES(LINEAR_SHAPES), plan_linear_d_w, NULL, run_linear_d_w, expect_linear_d_w},
	{"linear_d_w, add", SHAPES(LINEAR_SHAPES), plan_linear_d_w, NULL, run_linear_d_w_add, expect_linear_d_w_add},
	{"embedding_forward", SHAPES(EMBEDDING_SHAPES), plan_embedding_forward, NULL, run_embedding_forward,
         expect_embedding_forward},
	{"embedding_backward", SHAPES(EMBEDDING_SHAPES), plan_embedding_backward, NULL, run_embedding_backward,
         expect_embedding_backward},
	{"rmsnorm_forward", SHAPES(RMSNORM_SHAPES), plan_rmsnorm_forward, NULL, run_rmsnorm_forward,
         expect_rmsnorm_forward},
	{"rmsnorm_backward", SHAPES(RMSNORM_SHAPES), plan_rmsnorm_backward, NULL, run_rmsnorm_backward,
         expect_rmsnorm_backward},
	{"rope_angles", SHAPES(ROPE_SHAPES), plan_rope_angles, NULL, run_rope_angles, expect_rope_angles},
	{"rope", SHAPES(ROPE_SHAPES), plan_rope, NULL, run_rope, expect_rope},
	{"swiglu_forward", SHAPES(ROW_SHAPES), plan_swiglu, prepare_swiglu, run_swiglu_forward, expect_swiglu_forward},
	{"swiglu_backward", SHAPES(ROW_SHAPES), plan_swiglu, prepare_swiglu, run_swiglu_backward,
         expect_swiglu_backward},
	{"geglu_forward", SHAPES(ROW_SHAPES), plan_swiglu, prepare_swiglu, run_geglu_forward, expect_geglu_forward},
	{"geglu_backward", SHAPES(ROW_SHAPES), plan_swiglu, prepare_swiglu, run_geglu_backward, expect_geglu_backward},
	{"gather_rows", SHAPES(ROW_SHAPES), plan_gather_rows, NULL, run_gather_rows, expect_gather_rows},
	{"add", SHAPES(ROW_SHAPES), plan_add, NULL, run_add, expect_add},
	{"add_gradients", SHAPES(ROW_SHAPES), plan_add_gradients, NULL, run_add_gradients, expect_add},
	{"scale", SHAPES(ROW_SHAPES), plan_changed, NULL, run_scale, expect_scale},
	{"softcap", SHAPES(ROW_SHAPES), plan_changed, NULL, run_softcap, expect_softcap},
	{"sum_squares", SHAPES(ROW_SHAPES), plan_sum_squares, NULL, run_sum_squares, expect_sum_squares},
};
const int CHECK_CASE_COUNT = sizeof(CHECK_CASES) / sizeof(CHECK_CASES[0]);

/* Computes RMSNorm of groups of columns, and its gradients. */
#include "kernels/cpu/operations.h"

enum { GRAIN = 64 / sizeof(real) };

static int is_parallel(const struct wlb_norm_groups *g)
{
	return g->rows * g->groups * g->width >= WLB_CPU_PARALLEL_ELEMENTS;
}

static real rstd_of(const struct wlb_norm_groups *g, real squares)
{
	return 1 / sqrt(squares / (real)g->total + (real)g->epsilon);
}

void VARIANT(group_norm_sums)(struct wlb_device *device, void *sums_out, const void *x_in, int64_t x_stride,
                              const void *d_in, int64_t d_stride, const void *weight_in,
                              const struct wlb_norm_groups *g)
{
	real *sums = sums_out;
	const real *x = x_in, *d = d_in, *weight = weight_in, addend = (real)g->weight_addend;
	int threads = wlb_cpu_of(device)->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (is_parallel(g))
	for (int64_t line = 0; line < g->rows * g->groups; line++) {
		int64_t row = line / g->groups, column = line % g->groups * g->width;
		const real *a = x + row * x_stride + column, *b = d + row * d_stride + column;
		real sum = 0;
		if (weight == NULL)
#pragma omp simd reduction(+ : sum)
			for (int64_t i = 0; i < g->width; i++)
				sum += a[i] * b[i];
		else
#pragma omp simd reduction(+ : sum)
			for (int64_t i = 0; i < g->width; i++)
				sum += (weight[i] + addend) * b[i] * a[i];
		sums[line] = sum;
	}
}

void VARIANT(group_norm_forward)(struct wlb_device *device, void *out_out, int64_t out_stride, const void *x_in,
                                 int64_t x_stride, const void *squares_in, const void *weight_in,
                                 const struct wlb_norm_groups *g)
{
	real *out = out_out;
	const real *x = x_in, *squares = squares_in, *weight = weight_in, addend = (real)g->weight_addend;
	int threads = wlb_cpu_of(device)->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (is_parallel(g))
	for (int64_t line = 0; line < g->rows * g->groups; line++) {
		int64_t row = line / g->groups, column = line % g->groups * g->width;
		const real *from = x + row * x_stride + column;
		real *to = out + row * out_stride + column, r = rstd_of(g, squares[line]);
#pragma omp simd
		for (int64_t i = 0; i < g->width; i++)
			to[i] = from[i] * r * (weight[i] + addend);
	}
}

/* Adds d x r of all rows and groups to the columns of d_weight in a range. */
static void add_weight_gradient(real *d_weight, const real *d, int64_t d_stride, const real *x, int64_t x_stride,
                                const real *squares, const struct wlb_norm_groups *g, struct wlb_range columns)
{
	for (int64_t line = 0; line < g->rows * g->groups; line++) {
		int64_t row = line / g->groups, column = line % g->groups * g->width;
		const real *of_d = d + row * d_stride + column, *of_x = x + row * x_stride + column;
		real r = rstd_of(g, squares[line]);
#pragma omp simd
		for (int64_t i = columns.begin; i < columns.end; i++)
			d_weight[i] += of_d[i] * of_x[i] * r;
	}
}

/* With w = weight + weight_addend and y = x r w: dx = r (w dy - x r^2 sum(w dy x) / total). The gradient of the weight
 * is summed before dy is replaced, each column by one thread. */
void VARIANT(group_norm_backward)(struct wlb_device *device, void *d_out, int64_t d_stride, void *d_weight_out,
                                  const void *x_in, int64_t x_stride, const void *squares_in, const void *products_in,
                                  const void *weight_in, const struct wlb_norm_groups *g)
{
	real *d = d_out, *d_weight = d_weight_out;
	const real *x = x_in, *squares = squares_in, *products = products_in, *weight = weight_in;
	const real addend = (real)g->weight_addend;
	int threads = wlb_cpu_of(device)->threads;
#pragma omp parallel for schedule(static, 1) num_threads(threads) if (is_parallel(g))
	for (int part = 0; part < threads; part++)
		add_weight_gradient(d_weight, d, d_stride, x, x_stride, squares, g,
		                    wlb_cpu_part(g->width, GRAIN, part, threads));
#pragma omp parallel for schedule(static) num_threads(threads) if (is_parallel(g))
	for (int64_t line = 0; line < g->rows * g->groups; line++) {
		int64_t row = line / g->groups, column = line % g->groups * g->width;
		const real *of_x = x + row * x_stride + column;
		real *of_d = d + row * d_stride + column, r = rstd_of(g, squares[line]);
		real mean = r * r * products[line] / (real)g->total;
#pragma omp simd
		for (int64_t i = 0; i < g->width; i++)
			of_d[i] = r * ((weight[i] + addend) * of_d[i] - of_x[i] * mean);
	}
}

/* Computes RMSNorm and its gradients. */
#include "kernels/cpu/operations.h"

#include <string.h>

enum { GRAIN = 64 / sizeof(real) };

static void row_forward(real *out, real *rstd, const real *x, const real *weight, real addend, int64_t width,
                        real epsilon)
{
	real sum = 0;
#pragma omp simd reduction(+ : sum)
	for (int64_t i = 0; i < width; i++)
		sum += x[i] * x[i];
	real r = 1 / sqrt(sum / (real)width + epsilon);
	*rstd = r;
#pragma omp simd
	for (int64_t i = 0; i < width; i++)
		out[i] = x[i] * r * (weight[i] + addend);
}

static void add_rows(real *sum, const real *x, const real *residual, int64_t width)
{
#pragma omp simd
	for (int64_t i = 0; i < width; i++)
		sum[i] = x[i] + residual[i];
}

void VARIANT(rmsnorm_forward)(struct wlb_device *device, void *out_out, void *rstd_out, void *sum_out, const void *x_in,
                              const void *residual_in, const void *weight_in, double addend, int64_t tokens,
                              int64_t width, double epsilon)
{
	real *out = out_out, *rstd = rstd_out, *sum = sum_out;
	const real *x = x_in, *residual = residual_in, *weight = weight_in;
	int threads = wlb_cpu_of(device)->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (tokens * width >= WLB_CPU_PARALLEL_ELEMENTS)
	for (int64_t t = 0; t < tokens; t++) {
		const real *row = x + t * width;
		if (residual != NULL) {
			add_rows(sum + t * width, row, residual + t * width, width);
			row = sum + t * width;
		}
		row_forward(out + t * width, rstd + t, row, weight, (real)addend, width, (real)epsilon);
	}
}

/* With w = weight + addend and y = x r w: dx = r (w dy - x r^2 mean(w dy x)), dw += dy x r. */
static void row_backward(real *d_x, real *d_weight, const real *d_out, const real *x, const real *weight, real addend,
                         real r, int64_t width)
{
	real sum = 0;
#pragma omp simd reduction(+ : sum)
	for (int64_t i = 0; i < width; i++)
		sum += (weight[i] + addend) * d_out[i] * x[i];
	real mean = r * r * sum / (real)width;
#pragma omp simd
	for (int64_t i = 0; i < width; i++) {
		d_x[i] += r * ((weight[i] + addend) * d_out[i] - x[i] * mean);
		d_weight[i] += d_out[i] * x[i] * r;
	}
}

/* Each part sums the weight's gradient over its own tokens; then the parts are added in order. */
void VARIANT(rmsnorm_backward)(struct wlb_device *device, void *d_x_out, void *d_weight_out, const void *d_out_in,
                               const void *x_in, const void *weight_in, double addend, const void *rstd_in,
                               int64_t tokens, int64_t width)
{
	real *d_x = d_x_out, *d_weight = d_weight_out;
	const real *d_out = d_out_in, *x = x_in, *weight = weight_in, *rstd = rstd_in;
	int parts = wlb_cpu_of(device)->threads;
	int64_t stride = (width + GRAIN - 1) / GRAIN * GRAIN;
	real *partial = wlb_cpu_scratch(device, (size_t)(parts * stride) * sizeof(real));
	if (partial == NULL)
		return;
#pragma omp parallel for schedule(static, 1) num_threads(parts) if (tokens * width >= WLB_CPU_PARALLEL_ELEMENTS)
	for (int part = 0; part < parts; part++) {
		struct wlb_range rows = wlb_cpu_part(tokens, 1, part, parts);
		real *mine = partial + part * stride;
		memset(mine, 0, (size_t)width * sizeof(real));
		for (int64_t t = rows.begin; t < rows.end; t++)
			row_backward(d_x + t * width, mine, d_out + t * width, x + t * width, weight, (real)addend,
			             rstd[t], width);
	}
	for (int part = 0; part < parts; part++)
		for (int64_t i = 0; i < width; i++)
			d_weight[i] += partial[part * stride + i];
}

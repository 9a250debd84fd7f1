/* Adds biases, and sums their gradients. */
#include "kernels/cpu/operations.h"

enum { GRAIN = 64 / sizeof(real) };

void VARIANT(add_bias)(struct wlb_device *device, void *y_out, int64_t stride, const void *bias_in, int64_t n,
                       int64_t width)
{
	real *y = y_out;
	const real *bias = bias_in;
	int threads = wlb_cpu_of(device)->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (n * width >= WLB_CPU_PARALLEL_ELEMENTS)
	for (int64_t t = 0; t < n; t++)
#pragma omp simd
		for (int64_t i = 0; i < width; i++)
			y[t * stride + i] += bias[i];
}

/* A thread sums the columns of its part, row after row: the result does not depend on how many threads there are. */
void VARIANT(bias_backward)(struct wlb_device *device, void *d_bias_out, const void *d_y_in, int64_t stride, int64_t n,
                            int64_t width)
{
	real *d_bias = d_bias_out;
	const real *d_y = d_y_in;
	int parts = wlb_cpu_of(device)->threads;
#pragma omp parallel for schedule(static, 1) num_threads(parts) if (n * width >= WLB_CPU_PARALLEL_ELEMENTS)
	for (int part = 0; part < parts; part++) {
		struct wlb_range columns = wlb_cpu_part(width, GRAIN, part, parts);
		for (int64_t t = 0; t < n; t++)
#pragma omp simd
			for (int64_t i = columns.begin; i < columns.end; i++)
				d_bias[i] += d_y[t * stride + i];
	}
}

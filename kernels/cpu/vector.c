/* Adds, scales and caps vectors, and sums their squares. */
#include "kernels/cpu/operations.h"

/* Elements between two prefetches; parts begin at multiples of it. */
enum { BLOCK = 256 };

void VARIANT(add)(struct wlb_device *device, void *y_out, const void *x_in, int64_t n)
{
	real *y = y_out;
	const real *x = x_in;
	int threads = wlb_cpu_of(device)->threads;
#pragma omp parallel for simd schedule(static) num_threads(threads) if (n >= WLB_CPU_PARALLEL_ELEMENTS)
	for (int64_t i = 0; i < n; i++)
		y[i] += x[i];
}

void VARIANT(scale)(struct wlb_device *device, void *x_out, double factor, int64_t n)
{
	real *x = x_out;
	const real by = (real)factor;
	int threads = wlb_cpu_of(device)->threads;
#pragma omp parallel for simd schedule(static) num_threads(threads) if (n >= WLB_CPU_PARALLEL_ELEMENTS)
	for (int64_t i = 0; i < n; i++)
		x[i] *= by;
}

void VARIANT(softcap)(struct wlb_device *device, void *x_out, double cap, int64_t n)
{
	real *x = x_out;
	const real most = (real)cap;
	int threads = wlb_cpu_of(device)->threads;
#pragma omp parallel for simd schedule(static) num_threads(threads) if (n >= WLB_CPU_PARALLEL_ELEMENTS)
	for (int64_t i = 0; i < n; i++)
		x[i] = most * wlb_tanh(x[i] / most);
}

static double block_squares(const real *x, int64_t n)
{
	double sum = 0;
#pragma omp simd reduction(+ : sum)
	for (int64_t i = 0; i < n; i++)
		sum += (double)x[i] * (double)x[i];
	return sum;
}

static double part_squares(const real *x, struct wlb_range range)
{
	double sum = 0;
	for (int64_t i = range.begin; i < range.end; i += BLOCK) {
		int64_t left = range.end - i;
		wlb_prefetch(x + i, BLOCK);
		sum += block_squares(x + i, left < BLOCK ? left : BLOCK);
	}
	return sum;
}

void VARIANT(sum_squares)(struct wlb_device *device, double *sum, const void *x_in, int64_t n)
{
	const real *x = x_in;
	int parts = wlb_cpu_of(device)->threads;
	double *partial = wlb_cpu_scratch(device, (size_t)parts * sizeof(*partial));
	if (partial == NULL)
		return;
#pragma omp parallel for schedule(static, 1) num_threads(parts) if (n >= WLB_CPU_PARALLEL_ELEMENTS)
	for (int part = 0; part < parts; part++)
		partial[part] = part_squares(x, wlb_cpu_part(n, BLOCK, part, parts));
	for (int part = 0; part < parts; part++)
		*sum += partial[part];
}

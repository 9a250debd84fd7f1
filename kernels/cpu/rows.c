/* Gathers rows of a matrix. */
#include "kernels/cpu/operations.h"

#include <string.h>

void VARIANT(gather_rows)(struct wlb_device *device, void *out_out, int64_t out_stride, const void *x_in,
                          int64_t x_stride, const int32_t *rows, int64_t count, int64_t width)
{
	real *out = out_out;
	const real *x = x_in;
	int threads = wlb_cpu_of(device)->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (count * width >= WLB_CPU_PARALLEL_ELEMENTS)
	for (int64_t i = 0; i < count; i++) {
		int64_t row = rows != NULL ? rows[i] : i;
		if (row < 0)
			memset(out + i * out_stride, 0, (size_t)width * sizeof(real));
		else
			memcpy(out + i * out_stride, x + row * x_stride, (size_t)width * sizeof(real));
	}
}

/* Gathers rows of a matrix. */
#include "kernels/cpu/operations.h"

#include <string.h>

void VARIANT(gather_rows)(struct wlb_device *device, void *out_out, const void *x_in, const int32_t *rows,
                          int64_t count, int64_t width)
{
	real *out = out_out;
	const real *x = x_in;
	int threads = wlb_cpu_of(device)->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (count * width >= WLB_CPU_PARALLEL_ELEMENTS)
	for (int64_t i = 0; i < count; i++) {
		if (rows[i] < 0)
			memset(out + i * width, 0, (size_t)width * sizeof(real));
		else
			memcpy(out + i * width, x + rows[i] * width, (size_t)width * sizeof(real));
	}
}

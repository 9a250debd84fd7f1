/* Gathers rows of the embedding or of a matrix, and adds to the gradients of the embedding. */
#include "kernels/cpu/operations.h"

#include <string.h>

enum { GRAIN = 64 / sizeof(real) };

void VARIANT(embedding_forward)(struct wlb_device *device, void *out_out, const void *table_in, const int32_t *ids,
                                int64_t tokens, int64_t width, int64_t first, int64_t count)
{
	real *out = out_out;
	const real *table = table_in;
	int threads = wlb_cpu_of(device)->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (tokens * width >= WLB_CPU_PARALLEL_ELEMENTS)
	for (int64_t t = 0; t < tokens; t++) {
		int64_t row = ids[t] - first;
		if (row >= 0 && row < count)
			memcpy(out + t * width, table + row * width, (size_t)width * sizeof(real));
		else
			memset(out + t * width, 0, (size_t)width * sizeof(real));
	}
}

/* Each part owns a range of columns, so that a token that appears twice is added in the order of the tokens. */
void VARIANT(embedding_backward)(struct wlb_device *device, void *d_table_out, const void *d_out_in, const int32_t *ids,
                                 int64_t tokens, int64_t width, int64_t first, int64_t count)
{
	real *d_table = d_table_out;
	const real *d_out = d_out_in;
	int parts = wlb_cpu_of(device)->threads;
#pragma omp parallel for schedule(static, 1) num_threads(parts) if (tokens * width >= WLB_CPU_PARALLEL_ELEMENTS)
	for (int part = 0; part < parts; part++) {
		struct wlb_range columns = wlb_cpu_part(width, GRAIN, part, parts);
		for (int64_t t = 0; t < tokens; t++) {
			int64_t row = ids[t] - first;
			if (row < 0 || row >= count)
				continue;
			real *to = d_table + row * width;
			const real *from = d_out + t * width;
#pragma omp simd
			for (int64_t i = columns.begin; i < columns.end; i++)
				to[i] += from[i];
		}
	}
}

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

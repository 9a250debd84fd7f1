/* Applies rotary position embeddings. */
#include "kernels/cpu/operations.h"

/* Angles are computed in double for either element type: at position 100,000 a float is too coarse for small angles. */
void VARIANT(rope_angles)(struct wlb_device *device, void *angles_out, const int32_t *positions, int64_t tokens,
                          const double *frequencies, int pairs, double scale)
{
	real *angles = angles_out;
	int threads = wlb_cpu_of(device)->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (tokens * pairs >= WLB_CPU_PARALLEL_ELEMENTS / 16)
	for (int64_t t = 0; t < tokens; t++)
		for (int i = 0; i < pairs; i++) {
			double angle = positions[t] * frequencies[i];
			angles[2 * t * pairs + i] = (real)(scale * cos(angle));
			angles[(2 * t + 1) * pairs + i] = (real)(scale * sin(angle));
		}
}

static void rotate_head(real *x, const real *cosines, const real *sines, real direction, int pairs)
{
#pragma omp simd
	for (int i = 0; i < pairs; i++) {
		real low = x[i], high = x[i + pairs], sine = direction * sines[i];
		x[i] = low * cosines[i] - high * sine;
		x[i + pairs] = high * cosines[i] + low * sine;
	}
}

void VARIANT(rope)(struct wlb_device *device, void *x_out, int64_t stride, const void *angles_in, int64_t tokens,
                   int heads, int head_dim, int pairs, int direction)
{
	real *x = x_out;
	const real *angles = angles_in;
	int threads = wlb_cpu_of(device)->threads;
	int64_t elements = tokens * heads * head_dim;
#pragma omp parallel for schedule(static) num_threads(threads) if (elements >= WLB_CPU_PARALLEL_ELEMENTS)
	for (int64_t t = 0; t < tokens; t++)
		for (int h = 0; h < heads; h++)
			rotate_head(x + t * stride + (int64_t)h * head_dim, angles + 2 * t * pairs,
			            angles + (2 * t + 1) * pairs, (real)direction, pairs);
}

/* Applies rotary position embeddings. */
#include "kernels/cpu/operations.h"

/* Angles are computed in double for either element type: at position 100,000 a float is too coarse for small angles. */
void VARIANT(rope_angles)(struct wlb_device *device, void *angles_out, const int32_t *positions, int64_t tokens,
                          int head_dim, double theta)
{
	real *angles = angles_out;
	int half = head_dim / 2, threads = wlb_cpu_of(device)->threads;
	double *frequency = wlb_cpu_scratch(device, (size_t)half * sizeof(*frequency));
	if (frequency == NULL)
		return;
	for (int i = 0; i < half; i++)
		frequency[i] = pow(theta, -2.0 * i / head_dim);
#pragma omp parallel for schedule(static) num_threads(threads) if (tokens * half >= WLB_CPU_PARALLEL_ELEMENTS / 16)
	for (int64_t t = 0; t < tokens; t++)
		for (int i = 0; i < half; i++) {
			double angle = positions[t] * frequency[i];
			angles[t * head_dim + i] = (real)cos(angle);
			angles[t * head_dim + half + i] = (real)sin(angle);
		}
}

static void rotate_head(real *x, const real *cosines, const real *sines, real direction, int half)
{
#pragma omp simd
	for (int i = 0; i < half; i++) {
		real low = x[i], high = x[i + half], sine = direction * sines[i];
		x[i] = low * cosines[i] - high * sine;
		x[i + half] = high * cosines[i] + low * sine;
	}
}

void VARIANT(rope)(struct wlb_device *device, void *x_out, int64_t stride, const void *angles_in, int64_t tokens,
                   int heads, int head_dim, int direction)
{
	real *x = x_out;
	const real *angles = angles_in;
	int half = head_dim / 2, threads = wlb_cpu_of(device)->threads;
	int64_t elements = tokens * heads * head_dim;
#pragma omp parallel for schedule(static) num_threads(threads) if (elements >= WLB_CPU_PARALLEL_ELEMENTS)
	for (int64_t t = 0; t < tokens; t++)
		for (int h = 0; h < heads; h++)
			rotate_head(x + t * stride + (int64_t)h * head_dim, angles + t * head_dim,
			            angles + t * head_dim + half, (real)direction, half);
}

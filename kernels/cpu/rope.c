/* Applies rotary position embeddings. */
#include "kernels/cpu/operations.h"

/* Angles are computed in double for either element type: at position 100,000 a float is too coarse for small angles. */
static void token_angles(real *cosines, real *sines, const double *frequency, int32_t position, int half, int direction)
{
	for (int i = 0; i < half; i++) {
		double angle = position * frequency[i];
		cosines[i] = (real)cos(angle);
		sines[i] = (real)(direction * sin(angle));
	}
}

static void rotate_head(real *x, const real *cosines, const real *sines, int half)
{
#pragma omp simd
	for (int i = 0; i < half; i++) {
		real low = x[i], high = x[i + half];
		x[i] = low * cosines[i] - high * sines[i];
		x[i + half] = high * cosines[i] + low * sines[i];
	}
}

void VARIANT(rope)(struct wlb_device *device, void *x_out, const int32_t *positions, int64_t tokens, int heads,
                   int head_dim, double theta, int direction)
{
	real *x = x_out;
	int half = head_dim / 2;
	int parts = wlb_cpu_of(device)->threads;
	double *frequency = wlb_cpu_scratch(device, (size_t)half * (sizeof(double) + 2 * sizeof(real) * (size_t)parts));
	if (frequency == NULL)
		return;
	real *angles = (real *)(frequency + half);
	for (int i = 0; i < half; i++)
		frequency[i] = pow(theta, -2.0 * i / head_dim);
	int64_t row = (int64_t)heads * head_dim;
#pragma omp parallel for schedule(static, 1) num_threads(parts) if (tokens * row >= WLB_CPU_PARALLEL_ELEMENTS)
	for (int part = 0; part < parts; part++) {
		struct wlb_range rows = wlb_cpu_part(tokens, 1, part, parts);
		real *cosines = angles + (int64_t)part * 2 * half;
		real *sines = cosines + half;
		for (int64_t t = rows.begin; t < rows.end; t++) {
			token_angles(cosines, sines, frequency, positions[t], half, direction);
			for (int h = 0; h < heads; h++)
				rotate_head(x + t * row + (int64_t)h * head_dim, cosines, sines, half);
		}
	}
}

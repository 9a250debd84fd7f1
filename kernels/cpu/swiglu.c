/* Computes SwiGLU and its gradients. */
#include "kernels/cpu/operations.h"

static inline real sigmoid(real x)
{
	return 1 / (1 + wlb_exp(-x));
}

static void row_forward(real *out, const real *gate, const real *up, int64_t width)
{
#pragma omp simd
	for (int64_t i = 0; i < width; i++)
		out[i] = gate[i] * sigmoid(gate[i]) * up[i];
}

void VARIANT(swiglu_forward)(struct wlb_device *device, void *out_out, const void *gate_up_in, int64_t n, int64_t width)
{
	real *out = out_out;
	const real *gate_up = gate_up_in;
	int threads = wlb_cpu_of(device)->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (n * width >= WLB_CPU_PARALLEL_ELEMENTS)
	for (int64_t t = 0; t < n; t++)
		row_forward(out + t * width, gate_up + 2 * t * width, gate_up + (2 * t + 1) * width, width);
}

static void row_backward(real *gate, real *up, real *d_out, int64_t width)
{
#pragma omp simd
	for (int64_t i = 0; i < width; i++) {
		real g = gate[i], d = d_out[i], u = up[i];
		real s = sigmoid(g);
		up[i] = d * g * s;
		gate[i] = d * u * s * (1 + g * (1 - s));
		d_out[i] = g * s * u; /* in the order of the forward pass, for the same bits */
	}
}

void VARIANT(swiglu_backward)(struct wlb_device *device, void *gate_up_out, void *d_out_out, int64_t n, int64_t width)
{
	real *gate_up = gate_up_out, *d_out = d_out_out;
	int threads = wlb_cpu_of(device)->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (n * width >= WLB_CPU_PARALLEL_ELEMENTS)
	for (int64_t t = 0; t < n; t++) {
		real *gate = gate_up + 2 * t * width;
		row_backward(gate, gate + width, d_out + t * width, width);
	}
}

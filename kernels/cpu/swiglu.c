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

static void row_backward(real *d_gate, real *d_up, const real *d_out, const real *gate, const real *up, int64_t width)
{
#pragma omp simd
	for (int64_t i = 0; i < width; i++) {
		real g = gate[i], d = d_out[i], u = up[i];
		real s = sigmoid(g);
		d_up[i] = d * g * s;
		d_gate[i] = d * u * s * (1 + g * (1 - s));
	}
}

void VARIANT(swiglu_backward)(struct wlb_device *device, void *d_gate_up_out, const void *d_out_in,
                              const void *gate_up_in, int64_t n, int64_t width)
{
	real *d_gate_up = d_gate_up_out;
	const real *d_out = d_out_in, *gate_up = gate_up_in;
	int threads = wlb_cpu_of(device)->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (n * width >= WLB_CPU_PARALLEL_ELEMENTS)
	for (int64_t t = 0; t < n; t++) {
		int64_t gate = 2 * t * width, up = gate + width;
		row_backward(d_gate_up + gate, d_gate_up + up, d_out + t * width, gate_up + gate, gate_up + up, width);
	}
}

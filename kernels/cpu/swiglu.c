/* Computes SwiGLU and its gradients. */
#include "kernels/cpu/operations.h"

static inline real sigmoid(real x)
{
	return 1 / (1 + wlb_exp(-x));
}

void VARIANT(swiglu_forward)(struct wlb_device *device, void *out_out, const void *gate_in, const void *up_in,
                             int64_t n)
{
	real *out = out_out;
	const real *gate = gate_in, *up = up_in;
	int threads = wlb_cpu_of(device)->threads;
#pragma omp parallel for simd schedule(static) num_threads(threads) if (n >= WLB_CPU_PARALLEL_ELEMENTS)
	for (int64_t i = 0; i < n; i++)
		out[i] = gate[i] * sigmoid(gate[i]) * up[i];
}

void VARIANT(swiglu_backward)(struct wlb_device *device, void *d_gate_out, void *d_up_out, const void *d_out_in,
                              const void *gate_in, const void *up_in, int64_t n)
{
	real *d_gate = d_gate_out, *d_up = d_up_out;
	const real *d_out = d_out_in, *gate = gate_in, *up = up_in;
	int threads = wlb_cpu_of(device)->threads;
#pragma omp parallel for simd schedule(static) num_threads(threads) if (n >= WLB_CPU_PARALLEL_ELEMENTS)
	for (int64_t i = 0; i < n; i++) {
		real g = gate[i], d = d_out[i], u = up[i];
		real s = sigmoid(g);
		d_up[i] = d * g * s;
		d_gate[i] = d * u * s * (1 + g * (1 - s));
	}
}

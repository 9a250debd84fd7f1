/* Computes SwiGLU and GeGLU, and their gradients. */
#include "kernels/cpu/operations.h"

enum gate { SILU, GELU };

static inline real sigmoid(real x)
{
	return 1 / (1 + wlb_exp(-x));
}

/* Both gates are g sigmoid(v(g)). SiLU has v(g) = g; GELU's approximation by tanh has v(g) = 2 sqrt(2 / pi) (g +
 * 0.044715 g^3), since (1 + tanh(v / 2)) / 2 is sigmoid(v). */
static const real GELU_FACTOR = (real)1.59576912160573071176, GELU_CUBE = (real)0.044715;

static inline real v_of(real g, enum gate gate)
{
	return gate == SILU ? g : GELU_FACTOR * (g + GELU_CUBE * g * g * g);
}

static inline real v_slope(real g, enum gate gate)
{
	return gate == SILU ? 1 : GELU_FACTOR * (1 + 3 * GELU_CUBE * g * g);
}

static inline void row_forward(real *out, const real *gate, const real *up, int64_t width, enum gate kind)
{
#pragma omp simd
	for (int64_t i = 0; i < width; i++)
		out[i] = gate[i] * sigmoid(v_of(gate[i], kind)) * up[i];
}

static inline void forward(struct wlb_device *device, real *out, const real *gate_up, int64_t n, int64_t width,
                           enum gate kind)
{
	int threads = wlb_cpu_of(device)->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (n * width >= WLB_CPU_PARALLEL_ELEMENTS)
	for (int64_t t = 0; t < n; t++)
		row_forward(out + t * width, gate_up + 2 * t * width, gate_up + (2 * t + 1) * width, width, kind);
}

void VARIANT(swiglu_forward)(struct wlb_device *device, void *out, const void *gate_up, int64_t n, int64_t width)
{
	forward(device, out, gate_up, n, width, SILU);
}

void VARIANT(geglu_forward)(struct wlb_device *device, void *out, const void *gate_up, int64_t n, int64_t width)
{
	forward(device, out, gate_up, n, width, GELU);
}

static inline void row_backward(real *gate, real *up, real *d_out, int64_t width, enum gate kind)
{
#pragma omp simd
	for (int64_t i = 0; i < width; i++) {
		real g = gate[i], d = d_out[i], u = up[i];
		real s = sigmoid(v_of(g, kind));
		up[i] = d * g * s;
		gate[i] = d * u * s * (1 + g * (1 - s) * v_slope(g, kind));
		d_out[i] = g * s * u; /* in the order of the forward pass, for the same bits */
	}
}

static inline void backward(struct wlb_device *device, real *gate_up, real *d_out, int64_t n, int64_t width,
                            enum gate kind)
{
	int threads = wlb_cpu_of(device)->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (n * width >= WLB_CPU_PARALLEL_ELEMENTS)
	for (int64_t t = 0; t < n; t++) {
		real *gate = gate_up + 2 * t * width;
		row_backward(gate, gate + width, d_out + t * width, width, kind);
	}
}

void VARIANT(swiglu_backward)(struct wlb_device *device, void *gate_up, void *d_out, int64_t n, int64_t width)
{
	backward(device, gate_up, d_out, n, width, SILU);
}

void VARIANT(geglu_backward)(struct wlb_device *device, void *gate_up, void *d_out, int64_t n, int64_t width)
{
	backward(device, gate_up, d_out, n, width, GELU);
}

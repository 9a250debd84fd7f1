/* Computes SwiGLU and GeGLU, and their gradients. */
#include "kernels/cuda/element.cuh"

__device__ static inline float sigmoid(float x)
{
	return 1.0f / (1.0f + expf(-x));
}

enum class gate_kind { silu, gelu };

/* Both gates are g sigmoid(v(g)). SiLU has v(g) = g; GELU's approximation by tanh has v(g) = 2 sqrt(2 / pi) (g +
 * 0.044715 g^3), since (1 + tanh(v / 2)) / 2 is sigmoid(v). */
static constexpr float GELU_FACTOR = 1.59576912160573071f, GELU_CUBE = 0.044715f;

template <gate_kind kind> __device__ static inline float v_of(float g)
{
	return kind == gate_kind::silu ? g : GELU_FACTOR * (g + GELU_CUBE * g * g * g);
}

template <gate_kind kind> __device__ static inline float v_slope(float g)
{
	return kind == gate_kind::silu ? 1.0f : GELU_FACTOR * (1.0f + 3.0f * GELU_CUBE * g * g);
}

/* Both passes compute it here, for the same bits. */
__device__ static inline float activated(float gate, float sigmoid_of_gate, float up)
{
	return gate * (sigmoid_of_gate * up);
}

/* A row of gate_up is `width` of gate, then as many of up. */
template <typename element, int count, gate_kind kind>
__global__ static void gated_forward(element *out, const element *gate_up, int64_t rows, int64_t width)
{
	const int64_t row = wlb_row_of_thread(), packs = width / count;
	if (row >= rows)
		return;
	const element *gates = gate_up + row * 2 * width, *ups = gates + width;
	for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
		float gate[count], up[count];
		wlb_load_values<count>(gate, gates, i);
		wlb_load_values<count>(up, ups, i);
#pragma unroll
		for (int j = 0; j < count; j++)
			gate[j] = activated(gate[j], sigmoid(v_of<kind>(gate[j])), up[j]);
		wlb_store_values<count>(out + row * width, i, gate);
	}
}

/* In place: a thread has read what it writes. */
template <typename element, int count, gate_kind kind>
__global__ static void gated_backward(element *gate_up, element *d_out, int64_t rows, int64_t width)
{
	const int64_t row = wlb_row_of_thread(), packs = width / count;
	if (row >= rows)
		return;
	element *gates = gate_up + row * 2 * width, *ups = gates + width, *out = d_out + row * width;
	for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
		float gate[count], up[count], d[count];
		wlb_load_values<count>(gate, gates, i);
		wlb_load_values<count>(up, ups, i);
		wlb_load_values<count>(d, out, i);
#pragma unroll
		for (int j = 0; j < count; j++) {
			const float g = gate[j], u = up[j], s = sigmoid(v_of<kind>(g));
			gate[j] = d[j] * u * s * (1.0f + g * (1.0f - s) * v_slope<kind>(g));
			up[j] = d[j] * g * s;
			d[j] = activated(g, s, u);
		}
		wlb_store_values<count>(gates, i, gate);
		wlb_store_values<count>(ups, i, up);
		wlb_store_values<count>(out, i, d);
	}
}

template <gate_kind kind>
static void forward(struct wlb_device *device, const char *name, void *out, const void *gate_up, int64_t n,
                    int64_t width)
{
	if (n == 0 || width == 0)
		return;
	wlb_choose_kind(device->compute, {width}, {out, gate_up}, [=](auto packs) {
		typedef typename decltype(packs)::element element;
		wlb_cuda_launch(device, name, wlb_rows_grid(n, width / packs.count),
		                gated_forward<element, packs.count, kind>, (element *)out, (const element *)gate_up, n,
		                width);
	});
}

template <gate_kind kind>
static void backward(struct wlb_device *device, const char *name, void *gate_up, void *d_out, int64_t n, int64_t width)
{
	if (n == 0 || width == 0)
		return;
	wlb_choose_kind(device->compute, {width}, {gate_up, d_out}, [=](auto packs) {
		typedef typename decltype(packs)::element element;
		wlb_cuda_launch(device, name, wlb_rows_grid(n, width / packs.count),
		                gated_backward<element, packs.count, kind>, (element *)gate_up, (element *)d_out, n,
		                width);
	});
}

void wlb_cuda_swiglu_forward(struct wlb_device *device, void *out, const void *gate_up, int64_t n, int64_t width)
{
	forward<gate_kind::silu>(device, "swiglu_forward", out, gate_up, n, width);
}

void wlb_cuda_swiglu_backward(struct wlb_device *device, void *gate_up, void *d_out, int64_t n, int64_t width)
{
	backward<gate_kind::silu>(device, "swiglu_backward", gate_up, d_out, n, width);
}

void wlb_cuda_geglu_forward(struct wlb_device *device, void *out, const void *gate_up, int64_t n, int64_t width)
{
	forward<gate_kind::gelu>(device, "geglu_forward", out, gate_up, n, width);
}

void wlb_cuda_geglu_backward(struct wlb_device *device, void *gate_up, void *d_out, int64_t n, int64_t width)
{
	backward<gate_kind::gelu>(device, "geglu_backward", gate_up, d_out, n, width);
}

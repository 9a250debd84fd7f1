/* Computes SwiGLU and its gradients. */
#include "kernels/cuda/element.cuh"

__device__ static inline float sigmoid(float x)
{
	return 1.0f / (1.0f + expf(-x));
}

/* Both passes compute it here, for the same bits. */
__device__ static inline float activated(float gate, float sigmoid_of_gate, float up)
{
	return gate * (sigmoid_of_gate * up);
}

/* A row of gate_up is `width` of gate, then as many of up. */
template <typename element, int count>
__global__ static void swiglu_forward(element *out, const element *gate_up, int64_t rows, int64_t width)
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
			gate[j] = activated(gate[j], sigmoid(gate[j]), up[j]);
		wlb_store_values<count>(out + row * width, i, gate);
	}
}

/* In place: a thread has read what it writes. */
template <typename element, int count>
__global__ static void swiglu_backward(element *gate_up, element *d_out, int64_t rows, int64_t width)
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
			const float g = gate[j], u = up[j], s = sigmoid(g);
			gate[j] = d[j] * u * s * (1.0f + g * (1.0f - s));
			up[j] = d[j] * g * s;
			d[j] = activated(g, s, u);
		}
		wlb_store_values<count>(gates, i, gate);
		wlb_store_values<count>(ups, i, up);
		wlb_store_values<count>(out, i, d);
	}
}

void wlb_cuda_swiglu_forward(struct wlb_device *device, void *out, const void *gate_up, int64_t n, int64_t width)
{
	if (n == 0 || width == 0)
		return;
	wlb_choose_kind(device->compute, {width}, {out, gate_up}, [=](auto kind) {
		typedef typename decltype(kind)::element element;
		wlb_cuda_launch(device, "swiglu_forward", wlb_rows_grid(n, width / kind.count),
		                swiglu_forward<element, kind.count>, (element *)out, (const element *)gate_up, n,
		                width);
	});
}

void wlb_cuda_swiglu_backward(struct wlb_device *device, void *gate_up, void *d_out, int64_t n, int64_t width)
{
	if (n == 0 || width == 0)
		return;
	wlb_choose_kind(device->compute, {width}, {gate_up, d_out}, [=](auto kind) {
		typedef typename decltype(kind)::element element;
		wlb_cuda_launch(device, "swiglu_backward", wlb_rows_grid(n, width / kind.count),
		                swiglu_backward<element, kind.count>, (element *)gate_up, (element *)d_out, n, width);
	});
}

/* Computes SwiGLU and its gradients. */
#include "kernels/cuda/element.cuh"

__device__ static inline float sigmoid(float x)
{
	return 1.0f / (1.0f + expf(-x));
}

/* A row of gate_up is `width` of gate, then as many of up. */
template <typename element, int count>
__global__ static void forward(element *out, const element *gate_up, int64_t rows, int64_t width)
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
			gate[j] *= sigmoid(gate[j]) * up[j];
		wlb_store_values<count>(out + row * width, i, gate);
	}
}

/* d_gate_up may be gate_up: a thread has read what it writes. */
template <typename element, int count>
__global__ static void backward(element *d_gate_up, const element *d_out, const element *gate_up, int64_t rows,
                                int64_t width)
{
	const int64_t row = wlb_row_of_thread(), packs = width / count;
	if (row >= rows)
		return;
	const int64_t at = row * 2 * width;
	for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
		float gate[count], up[count], d[count];
		wlb_load_values<count>(gate, gate_up + at, i);
		wlb_load_values<count>(up, gate_up + at + width, i);
		wlb_load_values<count>(d, d_out + row * width, i);
#pragma unroll
		for (int j = 0; j < count; j++) {
			const float g = gate[j], s = sigmoid(g);
			gate[j] = d[j] * up[j] * s * (1.0f + g * (1.0f - s));
			up[j] = d[j] * g * s;
		}
		wlb_store_values<count>(d_gate_up + at, i, gate);
		wlb_store_values<count>(d_gate_up + at + width, i, up);
	}
}

void wlb_cuda_swiglu_forward(struct wlb_device *device, void *out, const void *gate_up, int64_t n, int64_t width)
{
	if (n == 0 || width == 0)
		return;
	wlb_choose_kind(device->compute, {width}, {out, gate_up}, [=](auto kind) {
		typedef typename decltype(kind)::element element;
		wlb_cuda_launch(device, "swiglu_forward", wlb_rows_grid(n, width / kind.count),
		                forward<element, kind.count>, (element *)out, (const element *)gate_up, n, width);
	});
}

void wlb_cuda_swiglu_backward(struct wlb_device *device, void *d_gate_up, const void *d_out, const void *gate_up,
                              int64_t n, int64_t width)
{
	if (n == 0 || width == 0)
		return;
	wlb_choose_kind(device->compute, {width}, {d_gate_up, d_out, gate_up}, [=](auto kind) {
		typedef typename decltype(kind)::element element;
		wlb_cuda_launch(device, "swiglu_backward", wlb_rows_grid(n, width / kind.count),
		                backward<element, kind.count>, (element *)d_gate_up, (const element *)d_out,
		                (const element *)gate_up, n, width);
	});
}

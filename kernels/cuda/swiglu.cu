/* Computes SwiGLU and its gradients. */
#include "kernels/cuda/launch.cuh"

__device__ static inline float sigmoid(float x)
{
	return 1.0f / (1.0f + expf(-x));
}

/* Element i of `elements`, which are rows of `width`, has its gate at i + i / width * width of gate_up. */
__global__ static void forward(float *out, const float *gate_up, int64_t elements, int64_t width)
{
	WLB_FOR_ELEMENTS(i, elements)
	{
		const int64_t at = i + i / width * width;
		const float gate = gate_up[at];
		out[i] = gate * sigmoid(gate) * gate_up[at + width];
	}
}

__global__ static void backward(float *d_gate_up, const float *d_out, const float *gate_up, int64_t elements,
                                int64_t width)
{
	WLB_FOR_ELEMENTS(i, elements)
	{
		const int64_t at = i + i / width * width;
		const float g = gate_up[at], d = d_out[i], u = gate_up[at + width];
		const float s = sigmoid(g);
		d_gate_up[at + width] = d * g * s;
		d_gate_up[at] = d * u * s * (1.0f + g * (1.0f - s));
	}
}

void wlb_cuda_swiglu_forward(struct wlb_device *device, void *out, const void *gate_up, int64_t n, int64_t width)
{
	if (n * width == 0)
		return;
	wlb_cuda_launch(device, "swiglu_forward", {wlb_element_blocks(n * width), WLB_BLOCK}, forward, (float *)out,
	                (const float *)gate_up, n * width, width);
}

void wlb_cuda_swiglu_backward(struct wlb_device *device, void *d_gate_up, const void *d_out, const void *gate_up,
                              int64_t n, int64_t width)
{
	if (n * width == 0)
		return;
	wlb_cuda_launch(device, "swiglu_backward", {wlb_element_blocks(n * width), WLB_BLOCK}, backward,
	                (float *)d_gate_up, (const float *)d_out, (const float *)gate_up, n * width, width);
}

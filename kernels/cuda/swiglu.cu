/* Computes SwiGLU and its gradients. */
#include "kernels/cuda/launch.cuh"

__device__ static inline float sigmoid(float x)
{
	return 1.0f / (1.0f + expf(-x));
}

/* The pointers are not __restrict__, since out may be the same memory as gate or up. */
__global__ static void forward(float *out, const float *gate, const float *up, int64_t n)
{
	WLB_FOR_ELEMENTS(i, n)
	out[i] = gate[i] * sigmoid(gate[i]) * up[i];
}

__global__ static void backward(float *d_gate, float *d_up, const float *d_out, const float *gate, const float *up,
                                int64_t n)
{
	WLB_FOR_ELEMENTS(i, n)
	{
		const float g = gate[i], d = d_out[i], u = up[i];
		const float s = sigmoid(g);
		d_up[i] = d * g * s;
		d_gate[i] = d * u * s * (1.0f + g * (1.0f - s));
	}
}

void wlb_cuda_swiglu_forward(struct wlb_device *device, void *out, const void *gate, const void *up, int64_t n)
{
	if (n == 0)
		return;
	wlb_cuda_launch(device, "swiglu_forward", {wlb_element_blocks(n), WLB_BLOCK}, forward, (float *)out,
	                (const float *)gate, (const float *)up, n);
}

void wlb_cuda_swiglu_backward(struct wlb_device *device, void *d_gate, void *d_up, const void *d_out, const void *gate,
                              const void *up, int64_t n)
{
	if (n == 0)
		return;
	wlb_cuda_launch(device, "swiglu_backward", {wlb_element_blocks(n), WLB_BLOCK}, backward, (float *)d_gate,
	                (float *)d_up, (const float *)d_out, (const float *)gate, (const float *)up, n);
}

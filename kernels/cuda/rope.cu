/* Applies rotary position embeddings. */
#include "kernels/cuda/launch.cuh"

/* Rotates one token in each block. The angles of a token are computed once for all heads, in double: at position
 * 100,000 a float is too coarse for small angles. */
__global__ static void rotate(float *x, const int32_t *positions, int heads, int head_dim, double theta, int direction)
{
	const int half = head_dim / 2;
	float *cosines = (float *)wlb_dynamic_shared, *sines = cosines + half;
	for (int i = threadIdx.x; i < half; i += blockDim.x) {
		double sine, cosine;
		sincos(positions[blockIdx.x] * pow(theta, -2.0 * i / head_dim), &sine, &cosine);
		cosines[i] = (float)cosine;
		sines[i] = (float)(direction * sine);
	}
	__syncthreads();
	float *row = x + (int64_t)blockIdx.x * heads * head_dim;
	for (int pair = threadIdx.x; pair < heads * half; pair += blockDim.x) {
		const int i = pair % half;
		float *low = row + (pair / half) * head_dim + i, *high = low + half;
		const float a = *low, b = *high;
		*low = a * cosines[i] - b * sines[i];
		*high = b * cosines[i] + a * sines[i];
	}
}

void wlb_cuda_rope(struct wlb_device *device, void *x, const int32_t *positions, int64_t tokens, int heads,
                   int head_dim, double theta, int direction)
{
	if (tokens == 0 || heads == 0)
		return;
	wlb_cuda_launch(device, "rope", {(unsigned)tokens, WLB_BLOCK, (size_t)head_dim * sizeof(float)}, rotate,
	                (float *)x, positions, heads, head_dim, theta, direction);
}

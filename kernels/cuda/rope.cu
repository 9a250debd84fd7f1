/* Applies rotary position embeddings. */
#include "kernels/cuda/launch.cuh"

/* Angles are computed in double: at position 100,000 a float is too coarse for small angles. */
__global__ static void make_angles(float *angles, const int32_t *positions, int64_t n, int half, double theta)
{
	WLB_FOR_ELEMENTS(element, n)
	{
		const int64_t token = element / half;
		const int i = (int)(element % half);
		double sine, cosine;
		sincos(positions[token] * pow(theta, -2.0 * i / (2 * half)), &sine, &cosine);
		angles[token * 2 * half + i] = (float)cosine;
		angles[token * 2 * half + half + i] = (float)sine;
	}
}

/* Rotates one token in each block. */
__global__ static void rotate(float *x, int64_t stride, const float *angles, int heads, int half, float direction)
{
	const float *cosines = angles + (int64_t)blockIdx.x * 2 * half, *sines = cosines + half;
	float *row = x + blockIdx.x * stride;
	for (int pair = threadIdx.x; pair < heads * half; pair += blockDim.x) {
		const int i = pair % half;
		float *low = row + (pair / half) * 2 * half + i, *high = low + half;
		const float a = *low, b = *high, sine = direction * sines[i];
		*low = a * cosines[i] - b * sine;
		*high = b * cosines[i] + a * sine;
	}
}

void wlb_cuda_rope_angles(struct wlb_device *device, void *angles, const int32_t *positions, int64_t tokens,
                          int head_dim, double theta)
{
	const int64_t n = tokens * (head_dim / 2);
	if (n == 0)
		return;
	wlb_cuda_launch(device, "rope_angles", {wlb_element_blocks(n), WLB_BLOCK}, make_angles, (float *)angles,
	                positions, n, head_dim / 2, theta);
}

void wlb_cuda_rope(struct wlb_device *device, void *x, int64_t stride, const void *angles, int64_t tokens, int heads,
                   int head_dim, int direction)
{
	if (tokens == 0 || heads == 0)
		return;
	wlb_cuda_launch(device, "rope", {(unsigned)tokens, WLB_BLOCK}, rotate, (float *)x, stride,
	                (const float *)angles, heads, head_dim / 2, (float)direction);
}

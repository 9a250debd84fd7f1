/* Computes the angles of rotary position embeddings, and applies them. */
#include "kernels/cuda/element.cuh"

/* Threads of x have neighbouring angles, those of y different tokens; a block computes TOKENS_OF_BLOCK tokens. */
static constexpr unsigned ANGLES_X = 32, ANGLES_Y = 8;
static constexpr int64_t TOKENS_OF_BLOCK = 64;

/* In double: at position 100,000 a float is too coarse for small angles. The angle is counted in half turns, of which
 * sincospi drops the whole turns without an error. */
__global__ static void rope_angles(float *angles, const int32_t *positions, int64_t tokens, int half, double theta)
{
	const int i = (int)(blockIdx.y * ANGLES_X + threadIdx.x);
	if (i >= half)
		return;
	const double half_turns = pow(theta, -(double)i / half) * 0.31830988618379067154; /* 1 / pi */
	const int64_t begin = blockIdx.x * TOKENS_OF_BLOCK, end = min(begin + TOKENS_OF_BLOCK, tokens);
	for (int64_t t = begin + threadIdx.y; t < end; t += ANGLES_Y) {
		double sine, cosine;
		sincospi(positions[t] * half_turns, &sine, &cosine);
		angles[t * 2 * half + i] = (float)cosine;
		angles[t * 2 * half + half + i] = (float)sine;
	}
}

void wlb_cuda_rope_angles(struct wlb_device *device, void *angles, const int32_t *positions, int64_t tokens,
                          int head_dim, double theta)
{
	const int half = head_dim / 2;
	if (tokens == 0 || half == 0)
		return;
	const dim3 blocks((unsigned)((tokens + TOKENS_OF_BLOCK - 1) / TOKENS_OF_BLOCK),
	                  ((unsigned)half + ANGLES_X - 1) / ANGLES_X);
	wlb_cuda_launch(device, "rope_angles", {blocks, dim3(ANGLES_X, ANGLES_Y)}, rope_angles, (float *)angles,
	                positions, tokens, half, theta);
}

template <int count, typename element>
__device__ static inline void rotate_pack(element *head, int i, int half, const float (&cosines)[count],
                                          const float (&sines)[count])
{
	float low[count], high[count], new_low[count], new_high[count];
	wlb_load_values<count>(low, head, i);
	wlb_load_values<count>(high, head + half, i);
#pragma unroll
	for (int j = 0; j < count; j++) {
		new_low[j] = low[j] * cosines[j] - high[j] * sines[j];
		new_high[j] = high[j] * cosines[j] + low[j] * sines[j];
	}
	wlb_store_values<count>(head, i, new_low);
	wlb_store_values<count>(head + half, i, new_high);
}

/* Rotates one token in each block: a thread loads its angles once, for the heads threadIdx.y, threadIdx.y + blockDim.y,
 * and so on. */
template <typename element, int count>
__global__ static void rope(element *x, int64_t stride, const float *angles, int heads, int half, float direction)
{
	element *row = x + blockIdx.x * stride;
	const float *of_token = angles + (int64_t)blockIdx.x * 2 * half;
	for (int i = (int)threadIdx.x; i < half / count; i += (int)blockDim.x) {
		float cosines[count], sines[count];
		wlb_load_floats<count>(cosines, of_token, i);
		wlb_load_floats<count>(sines, of_token + half, i);
#pragma unroll
		for (int j = 0; j < count; j++)
			sines[j] *= direction;
		for (int head = (int)threadIdx.y; head < heads; head += (int)blockDim.y)
			rotate_pack<count>(row + (int64_t)head * 2 * half, i, half, cosines, sines);
	}
}

void wlb_cuda_rope(struct wlb_device *device, void *x, int64_t stride, const void *angles, int64_t tokens, int heads,
                   int head_dim, int direction)
{
	const int half = head_dim / 2;
	const unsigned most = WLB_BLOCK;
	if (tokens == 0 || heads == 0 || half == 0)
		return;
	wlb_choose_kind(device->compute, {stride, half}, {x, angles}, [=](auto kind) {
		typedef typename decltype(kind)::element element;
		const unsigned packs = (unsigned)(half / kind.count), threads = packs < most ? packs : most;
		wlb_cuda_launch(device, "rope", {(unsigned)tokens, dim3(threads, most / threads)},
		                rope<element, kind.count>, (element *)x, stride, (const float *)angles, heads, half,
		                (float)direction);
	});
}

/* Computes the angles of rotary position embeddings, and applies them. */
#include "kernels/cuda/element.cuh"

/* Threads of x have neighbouring angles, those of y different tokens; a block computes TOKENS_OF_BLOCK tokens. */
static constexpr unsigned ANGLES_X = 32, ANGLES_Y = 8;
static constexpr int64_t TOKENS_OF_BLOCK = 64;

/* In double: at position 100,000 a float is too coarse for small angles. The angle is counted in half turns, of which
 * sincospi drops the whole turns without an error. */
__global__ static void rope_angles(float *angles, const int32_t *positions, int64_t tokens, const double *frequencies,
                                   int pairs, double scale)
{
	const int i = (int)(blockIdx.y * ANGLES_X + threadIdx.x);
	if (i >= pairs)
		return;
	const double half_turns = frequencies[i] * 0.31830988618379067154; /* 1 / pi */
	const int64_t begin = blockIdx.x * TOKENS_OF_BLOCK, end = min(begin + TOKENS_OF_BLOCK, tokens);
	for (int64_t t = begin + threadIdx.y; t < end; t += ANGLES_Y) {
		double sine, cosine;
		sincospi(positions[t] * half_turns, &sine, &cosine);
		angles[t * 2 * pairs + i] = (float)(scale * cosine);
		angles[t * 2 * pairs + pairs + i] = (float)(scale * sine);
	}
}

void wlb_cuda_rope_angles(struct wlb_device *device, void *angles, const int32_t *positions, int64_t tokens,
                          const double *frequencies, int pairs, double scale)
{
	if (tokens == 0 || pairs == 0)
		return;
	const dim3 blocks((unsigned)((tokens + TOKENS_OF_BLOCK - 1) / TOKENS_OF_BLOCK),
	                  ((unsigned)pairs + ANGLES_X - 1) / ANGLES_X);
	wlb_cuda_launch(device, "rope_angles", {blocks, dim3(ANGLES_X, ANGLES_Y)}, rope_angles, (float *)angles,
	                positions, tokens, frequencies, pairs, scale);
}

template <int count, typename element>
__device__ static inline void rotate_pack(element *head, int i, int pairs, const float (&cosines)[count],
                                          const float (&sines)[count])
{
	float low[count], high[count], new_low[count], new_high[count];
	wlb_load_values<count>(low, head, i);
	wlb_load_values<count>(high, head + pairs, i);
#pragma unroll
	for (int j = 0; j < count; j++) {
		new_low[j] = low[j] * cosines[j] - high[j] * sines[j];
		new_high[j] = high[j] * cosines[j] + low[j] * sines[j];
	}
	wlb_store_values<count>(head, i, new_low);
	wlb_store_values<count>(head + pairs, i, new_high);
}

/* Rotates one token in each block: a thread loads its angles once, for the heads threadIdx.y, threadIdx.y + blockDim.y,
 * and so on. */
template <typename element, int count>
__global__ static void rope(element *x, int64_t stride, const float *angles, int heads, int head_dim, int pairs,
                            float direction)
{
	element *row = x + blockIdx.x * stride;
	const float *of_token = angles + (int64_t)blockIdx.x * 2 * pairs;
	for (int i = (int)threadIdx.x; i < pairs / count; i += (int)blockDim.x) {
		float cosines[count], sines[count];
		wlb_load_floats<count>(cosines, of_token, i);
		wlb_load_floats<count>(sines, of_token + pairs, i);
#pragma unroll
		for (int j = 0; j < count; j++)
			sines[j] *= direction;
		for (int head = (int)threadIdx.y; head < heads; head += (int)blockDim.y)
			rotate_pack<count>(row + (int64_t)head * head_dim, i, pairs, cosines, sines);
	}
}

void wlb_cuda_rope(struct wlb_device *device, void *x, int64_t stride, const void *angles, int64_t tokens, int heads,
                   int head_dim, int pairs, int direction)
{
	const unsigned most = WLB_BLOCK;
	if (tokens == 0 || heads == 0 || pairs == 0)
		return;
	wlb_choose_kind(device->compute, {stride, head_dim, pairs}, {x, angles}, [=](auto kind) {
		typedef typename decltype(kind)::element element;
		const unsigned packs = (unsigned)(pairs / kind.count), threads = packs < most ? packs : most;
		wlb_cuda_launch(device, "rope", {(unsigned)tokens, dim3(threads, most / threads)},
		                rope<element, kind.count>, (element *)x, stride, (const float *)angles, heads, head_dim,
		                pairs, (float)direction);
	});
}

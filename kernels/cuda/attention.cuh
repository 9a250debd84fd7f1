/*
 * What the forward and the backward pass of attention share: sizes, masks, and the start of their kernels.
 *
 * Rows and columns: a block of threads has a tile of rows, the queries of a tile or its keys, and visits blocks of
 * columns, the keys that those queries see or the queries that see those keys.
 */
#ifndef WLB_CUDA_ATTENTION_CUH
#define WLB_CUDA_ATTENTION_CUH

#include "kernels/cuda/attention.h"
#include "kernels/cuda/attention_tile.cuh"
#include "kernels/cuda/launch.cuh"

/* Sizes, so that shared memory of a block is at most the 99 KiB of compute capability 8.6 and 8.9. */
template <typename element, int dim> struct wlb_attention_sizes {
	static constexpr bool is_bf16 = sizeof(element) == 2;
	static constexpr int rows = (is_bf16 ? 128 : 64) / (dim > 128 ? 2 : 1); /* of a tile */

	/* Forward: a warp has two tiles of 16 rows where its registers suffice, since each column is then read from
	 * shared memory half as often. */
	static constexpr int forward_row_tiles = is_bf16 && dim <= 128 ? 2 : 1;
	static constexpr int forward_threads = rows / forward_row_tiles * 2;
	static constexpr int forward_columns = (is_bf16 ? 64 : 32) / (dim > 64 ? 2 : 1);
	static constexpr size_t forward_bytes = (rows + 2 * forward_columns) * dim * sizeof(element);

	/* Backward: two matrices of rows, two stages of two matrices of columns, and of their statistics. */
	static constexpr int backward_columns = (is_bf16 ? 32 : 16) / (dim > 128 ? 2 : 1);
	static constexpr size_t backward_bytes =
		(2 * rows + 4 * backward_columns) * dim * sizeof(element) + 4 * backward_columns * sizeof(float);
};

/* Log base 2, since the processor has 2^x. */
constexpr float WLB_LOG2_E = 1.44269504088896341f, WLB_LN_2 = 0.693147180559945309f;

template <int dim> __device__ static inline float wlb_attention_scale()
{
	return 1.0f / sqrtf((float)dim);
}

/* Returns the end of the keys that query i of the segment sees, and the first of them, which is not beyond it. */
__device__ static inline int wlb_keys_seen(const struct wlb_segment &segment, int i)
{
	return max(0, min(segment.k_count, segment.q_offset + i + 1));
}

__device__ static inline int wlb_first_key_seen(const struct wlb_segment &segment, int window, int i)
{
	return window == 0 ? 0 : max(0, min(segment.k_count, segment.q_offset + i + 1 - window));
}

/* The columns of a block that a row sees: [low, high). */
struct wlb_seen {
	int low, high;
};

/* Returns which of the keys from `first` on query i sees. */
__device__ static inline struct wlb_seen wlb_keys_seen_from(const struct wlb_segment &segment, int window, int i,
                                                            int first)
{
	return {wlb_first_key_seen(segment, window, i) - first, wlb_keys_seen(segment, i) - first};
}

/* Whether all queries from `row` to `last` see all keys from `first` to `end`. */
__device__ static inline bool wlb_all_seen(const struct wlb_segment &segment, int window, int row, int last, int first,
                                           int end)
{
	return wlb_keys_seen(segment, row) >= end && wlb_first_key_seen(segment, window, last) <= first;
}

/* Scores that are not seen become -infinity. seen[half] is that of row lane / 4 + 8 half. */
template <int columns>
__device__ static inline void wlb_mask(float (&scores)[columns][4], const struct wlb_seen (&seen)[2])
{
	const int lane = threadIdx.x % 32;
#pragma unroll
	for (int n = 0; n < columns; n++)
#pragma unroll
		for (int i = 0; i < 4; i++) {
			const int column = 8 * n + lane % 4 * 2 + i % 2;
			if (column < seen[i / 2].low || column >= seen[i / 2].high)
				scores[n][i] = -INFINITY;
		}
}

/* The soft cap of scores that are not scaled yet; kernels are compiled with it and without, so that those of most
 * models keep their registers. A score that is not seen is -infinity only afterwards. */
template <int dim, int columns> __device__ static inline void wlb_cap_scores(float (&scores)[columns][4], float softcap)
{
	const float cap = softcap / wlb_attention_scale<dim>(), inverse = 1.0f / cap;
#pragma unroll
	for (int i = 0; i < columns * 4; i++)
		scores[i / 4][i % 4] = cap * tanhf(scores[i / 4][i % 4] * inverse);
}

/* Multiplies by the derivative of the soft cap, from the capped scores; 0 where they are not seen. */
template <int dim, int columns>
__device__ static inline void wlb_multiply_cap_slopes(float (&values)[columns][4], const float (&scores)[columns][4],
                                                      float softcap)
{
	const float inverse = wlb_attention_scale<dim>() / softcap;
#pragma unroll
	for (int i = 0; i < columns * 4; i++) {
		const float part_of_cap = fmaxf(scores[i / 4][i % 4] * inverse, -1.0f);
		values[i / 4][i % 4] *= 1.0f - part_of_cap * part_of_cap;
	}
}

/* The sum, or the largest, of the values that the four lanes of a row have. */
__device__ static inline float wlb_row_sum(float value)
{
	value += __shfl_xor_sync(0xffffffffu, value, 1);
	return value + __shfl_xor_sync(0xffffffffu, value, 2);
}

__device__ static inline float wlb_row_max(float value)
{
	value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 1));
	return fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 2));
}

/* A pointer to the columns of one head in a row. */
template <typename element, int dim>
__device__ static inline element *wlb_head_at(const struct wlb_cuda_rows &matrix, int64_t row, int head)
{
	return (element *)matrix.data + row * matrix.stride + head * dim;
}

/* Calls function<element, dim>(arguments...) for the element type and head_dim of an attention that was checked. */
#define WLB_ATTENTION_OF_DIM(function, type, dim, ...)                                                                 \
	((dim) == 64    ? function<type, 64>(__VA_ARGS__)                                                              \
	 : (dim) == 96  ? function<type, 96>(__VA_ARGS__)                                                              \
	 : (dim) == 128 ? function<type, 128>(__VA_ARGS__)                                                             \
	                : function<type, 256>(__VA_ARGS__))
#define WLB_ATTENTION_DISPATCH(function, attention, ...)                                                               \
	((attention).is_bf16 ? WLB_ATTENTION_OF_DIM(function, wlb_bf16, (attention).head_dim, __VA_ARGS__)             \
	                     : WLB_ATTENTION_OF_DIM(function, float, (attention).head_dim, __VA_ARGS__))

/* Queues a kernel of attention, of `blocks` blocks, which are not 0. */
static inline void wlb_attention_launch(struct wlb_device *device, const char *operation, int64_t blocks, int threads,
                                        size_t shared_bytes, void (*kernel)(struct wlb_cuda_attention),
                                        const struct wlb_cuda_attention &attention)
{
	const cudaError_t status =
		cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes);
	if (wlb_cuda_check(device, status, operation))
		wlb_cuda_launch(device, operation, {(unsigned)blocks, (unsigned)threads, shared_bytes}, kernel,
		                attention);
}

#endif

/*
 * What the passes of attention for compute capability 9.0 share (FlashAttention-3, Shah et al. 2024): a producer warp
 * copies boxes by TMA into stages of shared memory, and two warpgroups of consumers, with 64 rows of a tile each,
 * multiply them by wgmma. bfloat16, heads of 64 and 128.
 *
 * A matrix in shared memory is `dim` / 64 slabs of 64 columns, each of all its rows of 128 bytes (hopper.cuh). Boxes
 * have 64 rows, whatever the document: rows past the end of a range belong to another document or to none. They are
 * masked as columns of scores, and set to 0 where they are summed over, since 0 times what is not a number is none.
 */
#ifndef WLB_CUDA_ATTENTION_HOPPER_CUH
#define WLB_CUDA_ATTENTION_HOPPER_CUH

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/attention_hopper.h"
#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/ptx.cuh"

enum {
	WLB_CONSUMERS = 2, /* warpgroups */
	WLB_HOPPER_THREADS = (1 + WLB_CONSUMERS) * WLB_WARPGROUP,
	WLB_CONSUMER_WARPS = WLB_CONSUMERS * 4,
	WLB_HOPPER_ROWS = WLB_CONSUMERS * 64, /* of a tile */
	WLB_PRODUCER_REGISTERS = 24,
	WLB_CONSUMER_REGISTERS = 240,
	WLB_ROW_BYTES = 128, /* of a slab */
	/* Named barriers: 1 and 2 let the consumers issue products in turn; 3 and 4 are the consumers' own. */
	WLB_TURN_BARRIER = 1,
	WLB_OWN_BARRIER = 3,
};

struct wlb_hopper_attention {
	struct wlb_cuda_attention a;
	int32_t *tiles_taken; /* forward: device memory, 0 at first */
	struct wlb_tensor_map q, k, v, d_out;
};

/* Bytes of `rows` rows of a matrix, and of one slab. */
template <int dim, int rows> constexpr int wlb_matrix_bytes = rows *dim * 2;
template <int rows> constexpr int wlb_slab_bytes = rows *WLB_ROW_BYTES;

/* A stage and its phase, as producers and consumers walk through the stages in the same order. */
template <int stages> struct wlb_stage {
	int index = 0;
	unsigned parity = 0;

	__device__ void advance()
	{
		if (++index == stages) {
			index = 0;
			parity ^= 1;
		}
	}
};

/* A tile of queries of one head. */
struct wlb_head_tile {
	struct wlb_segment segment;
	int first, head, kv_head; /* first query, counted in the segment */
	int window;
	int first_block, blocks; /* of keys: its queries see those from the first on to that before `blocks` */
};

/* Returns the tile of that number, with blocks of `keys` keys. The heads that share keys come together, so that few
 * keys are in use at a time and stay in the L2 cache; within them the longest tiles come first. */
template <int keys>
__device__ static inline struct wlb_head_tile wlb_head_tile_of(const struct wlb_cuda_attention &a, int number)
{
	struct wlb_head_tile tile;
	const int group = a.heads / a.kv_heads, in_group = number % (a.query_tile_count * group);
	const struct wlb_query_tile listed = a.query_tiles[in_group / group];
	tile.kv_head = number / (a.query_tile_count * group);
	tile.head = tile.kv_head * group + in_group % group;
	tile.segment = a.segments[listed.segment];
	tile.first = listed.first;
	tile.window = a.window;
	const int last = min(listed.first + WLB_HOPPER_ROWS, tile.segment.q_count) - 1;
	tile.blocks = (wlb_keys_seen(tile.segment, last) + keys - 1) / keys;
	tile.first_block = min(tile.blocks, wlb_first_key_seen(tile.segment, a.window, listed.first) / keys);
	return tile;
}

/* Starts the copy of `rows` rows from `row` on of a head, whose columns begin at `column`. */
template <int dim, int rows>
__device__ static inline void wlb_load_rows(unsigned char *to, const struct wlb_tensor_map *map, int column,
                                            int64_t row, wlb_mbarrier *barrier)
{
#pragma unroll
	for (int slab = 0; slab < dim / WLB_BOX_COLUMNS; slab++)
#pragma unroll
		for (int first = 0; first < rows; first += WLB_BOX_ROWS)
			wlb_tma_load_2d(to + slab * wlb_slab_bytes<rows> + first * WLB_ROW_BYTES, map,
			                column + slab * WLB_BOX_COLUMNS, (int)row + first, barrier);
}

/* One thread of each warp of consumers arrives once its warp needs the stage no more. */
__device__ static inline void wlb_release_stage(wlb_mbarrier *empty)
{
	__syncwarp();
	if (threadIdx.x % 32 == 0)
		wlb_mbarrier_arrive(empty);
}

/* d = a b^T over all columns of a head: 64 rows of a matrix of `a_rows` rows, and as many rows of a matrix of `b_rows`
 * rows as d has columns; both descriptors name the first of them. */
template <int dim, int a_rows, int b_rows, int columns>
__device__ static inline void wlb_wgmma_rows(float (&d)[columns][4], uint64_t a, uint64_t b)
{
#pragma unroll
	for (int k = 0; k < dim / 16; k++)
		wlb_wgmma(d, a + wlb_wgmma_descriptor_step(k / 4 * wlb_slab_bytes<a_rows> + k % 4 * 32),
		          b + wlb_wgmma_descriptor_step(k / 4 * wlb_slab_bytes<b_rows> + k % 4 * 32), k > 0);
}

/* The same with the rows of a in registers. */
template <int dim, int b_rows, int columns>
__device__ static inline void wlb_wgmma_rows(float (&d)[columns][4], const uint32_t (&a)[dim / 16][4], uint64_t b)
{
#pragma unroll
	for (int k = 0; k < dim / 16; k++)
		wlb_wgmma<1>(d, a[k], b + wlb_wgmma_descriptor_step(k / 4 * wlb_slab_bytes<b_rows> + k % 4 * 32),
		             k > 0);
}

/* d += a b: a is the fragments of 64 rows and 16 `depth` columns, b as many rows of a matrix. */
template <int depth, int columns>
__device__ static inline void wlb_wgmma_add_columns(float (&d)[columns][4], const uint32_t (&a)[depth][4], uint64_t b)
{
#pragma unroll
	for (int k = 0; k < depth; k++)
		wlb_wgmma<0>(d, a[k], b + wlb_wgmma_descriptor_step(k * 16 * WLB_ROW_BYTES), 1);
}

/* Values become the fragments of a left operand, rounded to bfloat16. */
template <int depth>
__device__ static inline void wlb_pack_fragments(uint32_t (&to)[depth][4], const float (&values)[2 * depth][4])
{
#pragma unroll
	for (int k = 0; k < depth; k++)
#pragma unroll
		for (int i = 0; i < 4; i++)
			to[k][i] =
				wlb_pack_bf16(values[2 * k + i / 2][i % 2 * 2], values[2 * k + i / 2][i % 2 * 2 + 1]);
}

/* Sets the rows from `valid` on of a matrix of `rows` rows to 0, by a warpgroup, before products that sum over rows. */
template <int dim, int rows> __device__ static inline void wlb_clear_rows(unsigned char *matrix, int valid)
{
	constexpr int row_pieces = WLB_ROW_BYTES / 16;
	const int pieces = (rows - valid) * row_pieces;
	for (int i = threadIdx.x % WLB_WARPGROUP; i < pieces * (dim / WLB_BOX_COLUMNS); i += WLB_WARPGROUP) {
		const int slab = i / pieces, piece = valid * row_pieces + i % pieces;
		*(uint4 *)(matrix + slab * wlb_slab_bytes<rows> + piece * 16) = make_uint4(0, 0, 0, 0);
	}
}

/* After wlb_clear_rows: products that the warpgroup begins now see the zeros of all its threads. */
__device__ static inline void wlb_rows_cleared(int consumer)
{
	wlb_fence_proxy_async();
	wlb_named_barrier_sync<WLB_WARPGROUP>(WLB_OWN_BARRIER + consumer);
}

/* Four lanes of a row have four words each; afterwards lane c has the word c of each. */
__device__ static inline void wlb_transpose_words(uint32_t (&words)[4])
{
	const unsigned lane = threadIdx.x;
#pragma unroll
	for (int bit = 1; bit <= 2; bit <<= 1)
#pragma unroll
		for (int i = 0; i < 4; i++)
			if ((i & bit) == 0) {
				const bool high = lane & bit;
				const uint32_t other =
					__shfl_xor_sync(0xffffffffu, high ? words[i] : words[i | bit], bit);
				(high ? words[i] : words[i | bit]) = other;
			}
}

/* Stores a warp's 16 rows of fragments, times factor[half], as bfloat16; row lane / 4 of them is at `to`, and `rows` of
 * the 16 are stored. */
template <int columns>
__device__ static inline void wlb_store_fragments(wlb_bf16 *to, int64_t stride, int rows,
                                                  const float (&values)[columns][4], const float (&factor)[2])
{
	const int lane = threadIdx.x % 32;
#pragma unroll
	for (int half = 0; half < 2; half++)
#pragma unroll
		for (int n = 0; n < columns; n += 4) {
			uint32_t words[4];
#pragma unroll
			for (int i = 0; i < 4; i++)
				words[i] = wlb_pack_bf16(values[n + i][2 * half] * factor[half],
				                         values[n + i][2 * half + 1] * factor[half]);
			wlb_transpose_words(words);
			if (lane / 4 + 8 * half < rows)
				*(uint4 *)(to + 8 * half * stride + 8 * (n + lane % 4)) =
					make_uint4(words[0], words[1], words[2], words[3]);
		}
}

/* Sets the arguments of the kernels, with the maps of the matrices that they read. */
static inline int wlb_hopper_map(struct wlb_hopper_attention *p, const struct wlb_cuda_attention *a,
                                 struct wlb_error *error)
{
	const int64_t q_columns = (int64_t)a->heads * a->head_dim, k_columns = (int64_t)a->kv_heads * a->head_dim;
	*p = {};
	p->a = *a;
	if (wlb_cuda_map_matrix(&p->q, a->q.data, a->q_rows, q_columns, a->q.stride, error) != 0 ||
	    wlb_cuda_map_matrix(&p->k, a->k.data, a->k_rows, k_columns, a->k.stride, error) != 0 ||
	    wlb_cuda_map_matrix(&p->v, a->v.data, a->k_rows, k_columns, a->v.stride, error) != 0)
		return -1;
	if (a->d_out.data == NULL) /* forward */
		return 0;
	return wlb_cuda_map_matrix(&p->d_out, a->d_out.data, a->q_rows, q_columns, a->d_out.stride, error);
}

/* Queues a kernel of this file's kind. */
static inline void wlb_hopper_launch(struct wlb_device *device, const char *operation, int64_t blocks, int shared_bytes,
                                     void (*kernel)(struct wlb_hopper_attention),
                                     const struct wlb_hopper_attention &arguments)
{
	const cudaError_t status =
		cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
	if (wlb_cuda_check(device, status, operation))
		wlb_cuda_launch(device, operation, {(unsigned)blocks, WLB_HOPPER_THREADS, (size_t)shared_bytes}, kernel,
		                arguments);
}

#endif

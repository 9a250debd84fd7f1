/*
 * A tile of attention in shared memory: rows of `dim` elements, without padding. The pieces of 16 bytes of a row change
 * places by the row's number, so that the same piece of 8 rows in a row is in 8 different places of the 128 bytes that
 * shared memory reads at once, and ldmatrix meets no bank twice.
 */
#ifndef WLB_CUDA_ATTENTION_TILE_CUH
#define WLB_CUDA_ATTENTION_TILE_CUH

#include <stdint.h>

#include "kernels/cuda/ptx.cuh"

typedef uint16_t wlb_bf16; /* the bits of a bfloat16 */

/* Elements of 16 bytes. */
template <typename element> constexpr int wlb_piece = 16 / (int)sizeof(element);

/* Returns where piece `piece` of row `row` of a tile is, in elements. Where rows are a multiple of 128 bytes, all rows
 * begin in one bank, and 3 bits of the row are needed. Rows of 192 bytes (96 bfloat16) begin in two banks in turn, and
 * have no group of 8 for all pieces: 2 bits of the row's pair are added to its own. */
template <typename element, int dim> __device__ static inline int wlb_tile_at(int row, int piece)
{
	constexpr int pieces = dim / wlb_piece<element>;
	static_assert(pieces % 8 == 0 || pieces % 8 == 4, "rows are a multiple of 64 bytes");
	return row * dim + (piece ^ (pieces % 8 == 0 ? row & 7 : row >> 1 & 3)) * wlb_piece<element>;
}

/* Starts the copy of `rows` rows, by all `threads` threads of the block; those from `valid` on become 0. Threads of one
 * row take neighbouring pieces, and each thread keeps its place in the row and in groups of 8 rows, so that its
 * addresses differ by constants. */
template <typename element, int dim, int rows, int threads>
__device__ static inline void wlb_tile_copy(element *tile, const element *from, int64_t stride, int valid)
{
	constexpr int size = wlb_piece<element>, pieces = dim / size;
	constexpr int row_threads = pieces % 8 == 0 ? 8 : 4, rows_at_once = threads / row_threads;
	static_assert(rows_at_once % 8 == 0, "wlb_tile_at depends on the row modulo 8");
	const int piece = threadIdx.x % row_threads, row = threadIdx.x / row_threads;
	element *const to = tile + wlb_tile_at<element, dim>(row, piece);
	from += row * stride + piece * size;
#pragma unroll
	for (int first = 0; first < rows; first += rows_at_once) {
		const bool is_valid = row + first < valid;
		if (rows % rows_at_once == 0 || row + first < rows)
#pragma unroll
			for (int group = 0; group < dim; group += row_threads * size)
				wlb_copy_async(to + first * dim + group, from + group, is_valid);
		from += rows_at_once * stride;
	}
}

/* Two neighbours of a row, rounded to the element type. */
__device__ static inline void wlb_store_pair(wlb_bf16 *to, float first, float second)
{
	*(uint32_t *)to = wlb_pack_bf16(first, second);
}

__device__ static inline void wlb_store_pair(float *to, float first, float second)
{
	*(float2 *)to = make_float2(first, second);
}

/* Puts what a warp holds as fragments of 16 x 8, times `factor`[half] of each row, into rows [row, row + 16) and the
 * columns from `column` on. */
template <typename element, int dim, int columns>
__device__ static inline void wlb_tile_put(element *tile, int row, int column, const float (&values)[columns][4],
                                           const float (&factor)[2])
{
	const int lane = threadIdx.x % 32;
#pragma unroll
	for (int n = 0; n < columns; n++)
#pragma unroll
		for (int half = 0; half < 2; half++) {
			const int at = column + 8 * n + lane % 4 * 2;
			wlb_store_pair(
				tile + wlb_tile_at<element, dim>(row + lane / 4 + 8 * half, at / wlb_piece<element>) +
					at % wlb_piece<element>,
				values[n][2 * half] * factor[half], values[n][2 * half + 1] * factor[half]);
		}
}

/* Stores the first `valid` rows of a tile; all threads of the block call it. */
template <typename element, int dim, int threads>
__device__ static inline void wlb_tile_store(element *to, int64_t stride, const element *tile, int valid)
{
	constexpr int pieces = dim / wlb_piece<element>;
	for (int i = (int)threadIdx.x; i < valid * pieces; i += threads) {
		const int row = i / pieces, piece = i % pieces;
		*(uint4 *)(to + row * stride + piece * wlb_piece<element>) =
			*(const uint4 *)(tile + wlb_tile_at<element, dim>(row, piece));
	}
}

#endif

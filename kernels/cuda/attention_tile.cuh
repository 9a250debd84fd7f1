/*
 * A tile of attention in shared memory, and the two matrix products of tiles by a warp.
 *
 * A tile has rows of `dim` elements, without padding. The pieces of 16 bytes of a row change places by the row's
 * number, so that the same piece of 8 rows in a row is in 8 different places of the 128 bytes that shared memory reads
 * at once, and ldmatrix meets no bank twice.
 *
 * The results of the products are fragments as in ptx.cuh: of each 16 x 8 values lane 4 r + c has the columns 2 c and
 * 2 c + 1 of row r, then of row r + 8. bfloat16 is multiplied by tensor cores; float32 by plain instructions, with the
 * fragments in the same places, so that all else is one source.
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
				wlb_cp_async(to + first * dim + group, from + group, is_valid);
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

/* -- products -- */

/* d = a b^T: 16 `row_tiles` rows of the tile a from `row` on, with 8 `columns` rows of the tile b. */
template <int dim, int row_tiles, int columns>
__device__ static inline void wlb_multiply_rows(float (&d)[row_tiles][columns][4], const wlb_bf16 *a, int row,
                                                const wlb_bf16 *b)
{
	const int lane = threadIdx.x % 32;
#pragma unroll
	for (int m = 0; m < row_tiles; m++)
#pragma unroll
		for (int i = 0; i < columns * 4; i++)
			d[m][i / 4][i % 4] = 0;
#pragma unroll
	for (int k = 0; k < dim / 8; k += 2) {
		uint32_t left[row_tiles][4];
#pragma unroll
		for (int m = 0; m < row_tiles; m++)
			wlb_ldmatrix_x4(left[m],
			                a + wlb_tile_at<wlb_bf16, dim>(row + 16 * m + lane % 16, k + lane / 16));
#pragma unroll
		for (int n = 0; n < columns; n += 2) {
			uint32_t right[4];
			wlb_ldmatrix_x4(right, b + wlb_tile_at<wlb_bf16, dim>(8 * n + lane / 16 * 8 + lane % 8,
			                                                      k + lane / 8 % 2));
#pragma unroll
			for (int m = 0; m < row_tiles; m++) {
				wlb_mma_bf16(d[m][n], left[m], right[0], right[1]);
				wlb_mma_bf16(d[m][n + 1], left[m], right[2], right[3]);
			}
		}
	}
}

/* d += a b, where a is fragments, rounded to bfloat16, and b the columns from 8 `first` on of a tile. */
template <int dim, int row_tiles, int depth, int columns>
__device__ static inline void wlb_multiply_columns(float (&d)[row_tiles][columns][4],
                                                   const float (&a)[row_tiles][depth][4], const wlb_bf16 *b, int first)
{
	const int lane = threadIdx.x % 32;
#pragma unroll
	for (int k = 0; k < depth; k += 2) {
		uint32_t left[row_tiles][4];
#pragma unroll
		for (int m = 0; m < row_tiles; m++)
#pragma unroll
			for (int i = 0; i < 4; i++)
				left[m][i] = wlb_pack_bf16(a[m][k + i / 2][i % 2 * 2], a[m][k + i / 2][i % 2 * 2 + 1]);
#pragma unroll
		for (int n = 0; n < columns; n += 2) {
			uint32_t right[4];
			wlb_ldmatrix_x4_trans(right,
			                      b + wlb_tile_at<wlb_bf16, dim>(8 * k + lane % 16, first + n + lane / 16));
#pragma unroll
			for (int m = 0; m < row_tiles; m++) {
				wlb_mma_bf16(d[m][n], left[m], right[0], right[1]);
				wlb_mma_bf16(d[m][n + 1], left[m], right[2], right[3]);
			}
		}
	}
}

__device__ static inline float4 wlb_tile_quad(const float *tile, int at)
{
	return *(const float4 *)(tile + at);
}

__device__ static inline float wlb_add_products(float sum, float4 a, float4 b)
{
	return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

/* The sum of the products of the 8 bfloat16 in each 16 bytes. */
__device__ static inline float wlb_bf16_dot(const uint4 &left, const uint4 &right)
{
	const uint32_t l[4] = {left.x, left.y, left.z, left.w}, r[4] = {right.x, right.y, right.z, right.w};
	float sum = 0;
#pragma unroll
	for (int i = 0; i < 4; i++) {
		sum = fmaf(__uint_as_float(l[i] << 16), __uint_as_float(r[i] << 16), sum);
		sum = fmaf(__uint_as_float(l[i] & 0xffff0000u), __uint_as_float(r[i] & 0xffff0000u), sum);
	}
	return sum;
}

/* The same two products in float32. */
template <int dim, int row_tiles, int columns>
__device__ static inline void wlb_multiply_rows(float (&d)[row_tiles][columns][4], const float *a, int row,
                                                const float *b)
{
	const int r = threadIdx.x % 32 / 4, c = threadIdx.x % 4;
#pragma unroll
	for (int m = 0; m < row_tiles; m++)
#pragma unroll
		for (int i = 0; i < columns * 4; i++)
			d[m][i / 4][i % 4] = 0;
	for (int k = 0; k < dim / 4; k++)
#pragma unroll
		for (int i = 0; i < 2 * row_tiles; i++) {
			const float4 left = wlb_tile_quad(a, wlb_tile_at<float, dim>(row + 8 * i + r, k));
#pragma unroll
			for (int n = 0; n < 2 * columns; n++) {
				const float4 right =
					wlb_tile_quad(b, wlb_tile_at<float, dim>(n / 2 * 8 + 2 * c + n % 2, k));
				float *const sum = &d[i / 2][n / 2][i % 2 * 2 + n % 2];
				*sum = wlb_add_products(*sum, left, right);
			}
		}
}

template <int dim, int row_tiles, int depth, int columns>
__device__ static inline void wlb_multiply_columns(float (&d)[row_tiles][columns][4],
                                                   const float (&a)[row_tiles][depth][4], const float *b, int first)
{
	constexpr int halves = 2 * row_tiles;
	const int lane = threadIdx.x % 32, c = lane % 4;
	/* Pairs are not unrolled, so that the addresses of few rows of b are in registers at a time. */
#pragma unroll
	for (int fragment = 0; fragment < depth; fragment++)
#pragma unroll 1
		for (int pair = 0; pair < 4; pair++)
#pragma unroll
			for (int j = 0; j < 2 * halves; j++) {
				const int i = j % halves, odd = j / halves, k = 8 * fragment + 2 * pair + odd;
				/* Column k of the row is in another lane of the four that have the row. */
				const float left =
					__shfl_sync(0xffffffffu, a[i / 2][fragment][i % 2 * 2 + odd], lane - c + pair);
#pragma unroll
				for (int n = 0; n < columns; n++) {
					const int column = 8 * (first + n) + 2 * c;
					const int at = wlb_tile_at<float, dim>(k, column / 4) + column % 4;
					const float2 right = *(const float2 *)(b + at);
					float *const sums = &d[i / 2][n][i % 2 * 2];
					sums[0] = fmaf(left, right.x, sums[0]);
					sums[1] = fmaf(left, right.y, sums[1]);
				}
			}
}

#endif

/*
 * The two matrix products of attention, by a warp. Their results are fragments as in ptx.cuh: of each 16 x 8 values
 * lane 4 r + c has the columns 2 c and 2 c + 1 of row r, then of row r + 8. bfloat16 is multiplied by tensor cores;
 * float32 by plain instructions, with the fragments in the same places, so that all else is one source.
 */
#ifndef WLB_CUDA_ATTENTION_PRODUCTS_CUH
#define WLB_CUDA_ATTENTION_PRODUCTS_CUH

#include "kernels/cuda/attention_tile.cuh"

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
			wlb_load_matrices(left[m],
			                  a + wlb_tile_at<wlb_bf16, dim>(row + 16 * m + lane % 16, k + lane / 16));
#pragma unroll
		for (int n = 0; n < columns; n += 2) {
			uint32_t right[4];
			wlb_load_matrices(right, b + wlb_tile_at<wlb_bf16, dim>(8 * n + lane / 16 * 8 + lane % 8,
			                                                        k + lane / 8 % 2));
#pragma unroll
			for (int m = 0; m < row_tiles; m++) {
				wlb_multiply_bf16(d[m][n], left[m], right[0], right[1]);
				wlb_multiply_bf16(d[m][n + 1], left[m], right[2], right[3]);
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
			wlb_load_matrices_transposed(
				right, b + wlb_tile_at<wlb_bf16, dim>(8 * k + lane % 16, first + n + lane / 16));
#pragma unroll
			for (int m = 0; m < row_tiles; m++) {
				wlb_multiply_bf16(d[m][n], left[m], right[0], right[1]);
				wlb_multiply_bf16(d[m][n + 1], left[m], right[2], right[3]);
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

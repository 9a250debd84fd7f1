/*
 * A matrix product by one warp through every function of kernels/cuda/ptx.cuh: tests/gpu/check_ptx.cu runs it on a GPU
 * and on the host, tests/cuda_host with faults.
 */
#ifndef TESTS_GPU_PTX_PRODUCT_CUH
#define TESTS_GPU_PTX_PRODUCT_CUH

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"

enum ptx_fault {
	PTX_NO_FAULT,
	PTX_NO_WAIT,          /* copies are never waited for */
	PTX_WAIT_FOR_TOO_FEW, /* the copies of this step may be under way */
	PTX_ONE_TILE,         /* the tiles of the next step are copied onto those of this step */
	PTX_UNALIGNED,        /* a copy from an address that is not 16-byte aligned */
};

enum { PTX_SIDE = 16, PTX_STRIDE = 24 }; /* of tiles in shared memory; the padding spreads rows over the banks */

/* Starts the copy of a tile of 16 x 16 from a matrix whose rows have `stride` values: 16 bytes a lane. */
__device__ static inline void ptx_copy_tile(uint16_t (*tile)[PTX_STRIDE], const uint16_t *from, int stride)
{
	const int row = threadIdx.x / 2, column = threadIdx.x % 2 * 8;
	wlb_cp_async(&tile[row][column], from + row * stride + column, true);
}

/* d[16, 16] = a[16, k] b[16, k]^T, or a[16, k] b[k, 16] where b is `transposed`; k is a multiple of 16. One block of 32
 * threads; the tiles of a step are copied while those of the step before it are multiplied. */
template <int fault>
__global__ static void ptx_product(float *d, const uint16_t *a, const uint16_t *b, int k, int transposed)
{
	static __shared__ __align__(16) uint16_t tiles[2][2][PTX_SIDE][PTX_STRIDE];
	const int lane = threadIdx.x, steps = k / PTX_SIDE;
	const int b_stride = transposed ? PTX_SIDE : k, b_step = transposed ? PTX_SIDE * PTX_SIDE : PTX_SIDE;
	float sums[2][4] = {};
	for (int step = -1; step < steps; step++) {
		const int next = step + 1, now = fault == PTX_ONE_TILE ? 0 : step & 1,
			  then = fault == PTX_ONE_TILE ? 0 : next & 1;
		if (next < steps) {
			ptx_copy_tile(tiles[then][0], a + next * PTX_SIDE + (fault == PTX_UNALIGNED ? 1 : 0), k);
			ptx_copy_tile(tiles[then][1], b + next * b_step, b_stride);
		}
		wlb_cp_async_commit();
		if (step < 0)
			continue;
		if (fault == PTX_WAIT_FOR_TOO_FEW)
			wlb_cp_async_wait<2>();
		else if (fault != PTX_NO_WAIT)
			wlb_cp_async_wait<1>();
		__syncwarp();
		uint32_t left[4], right[4];
		const int matrix = lane / 8, row = lane % 8;
		wlb_ldmatrix_x4(left, &tiles[now][0][matrix % 2 * 8 + row][matrix / 2 * 8]);
		if (transposed)
			wlb_ldmatrix_x4_trans(right, &tiles[now][1][matrix % 2 * 8 + row][matrix / 2 * 8]);
		else
			wlb_ldmatrix_x4(right, &tiles[now][1][matrix / 2 * 8 + row][matrix % 2 * 8]);
		__syncwarp(); /* all lanes have read the tiles that are copied to next */
		wlb_mma_bf16(sums[0], left, right[0], right[1]);
		wlb_mma_bf16(sums[1], left, right[2], right[3]);
	}
	for (int i = 0; i < 8; i++)
		d[(lane / 4 + i % 4 / 2 * 8) * PTX_SIDE + i / 4 * 8 + lane % 4 * 2 + i % 2] = sums[i / 4][i % 4];
}

#endif

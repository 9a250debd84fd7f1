/*
 * Sums over a block, in a fixed order.
 */
#ifndef WLB_CUDA_REDUCE_CUH
#define WLB_CUDA_REDUCE_CUH

/* Every thread of the block must call it; each receives the sum of all `value`s. blockDim.x is a multiple of 32, at
 * most 1024. of_warp, in shared memory, is for a number of each warp; of two calls after each other each must have its
 * own. */
template <typename number> __device__ static inline number wlb_block_sum_in(number *of_warp, number value)
{
	const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
	for (int distance = 16; distance > 0; distance /= 2)
		value += __shfl_xor_sync(0xffffffffu, value, distance);
	if (lane == 0)
		of_warp[warp] = value;
	__syncthreads();
	number sum = 0;
	for (int w = 0; w < warps; w++)
		sum += of_warp[w];
	return sum;
}

/* The same with memory of its own, for which it needs a second barrier. */
template <typename number> __device__ static inline number wlb_block_sum(number value)
{
	static __shared__ number of_warp[32];
	__syncthreads(); /* all threads have read the result of the previous call */
	return wlb_block_sum_in(of_warp, value);
}

/* Adds the parts to *sum. It is launched as one block. */
template <typename number> __global__ static void wlb_add_parts(number *sum, const number *parts, int count)
{
	number mine = 0;
	for (int i = threadIdx.x; i < count; i += blockDim.x)
		mine += parts[i];
	const number all = wlb_block_sum(mine);
	if (threadIdx.x == 0)
		*sum += all;
}

#endif

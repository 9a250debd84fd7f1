/*
 * The sum over a block, in an order that is always the same.
 */
#ifndef WLB_CUDA_REDUCE_CUH
#define WLB_CUDA_REDUCE_CUH

/* Every thread of the block calls it and gets the sum of all `value`s. blockDim.x is a multiple of 32, at most 1024. */
template <typename number> __device__ inline number wlb_block_sum(number value)
{
	__shared__ number of_warp[32];
	const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
	for (int distance = 16; distance > 0; distance /= 2)
		value += __shfl_xor_sync(0xffffffffu, value, distance);
	__syncthreads(); /* the call before has been read by all */
	if (lane == 0)
		of_warp[warp] = value;
	__syncthreads();
	number sum = 0;
	for (int w = 0; w < warps; w++)
		sum += of_warp[w];
	return sum;
}

#endif

/*
 * Defines block and grid sizes of kernel launches, and checks their errors.
 */
#ifndef WLB_CUDA_CHECK_CUH
#define WLB_CUDA_CHECK_CUH

#include "kernels/cuda/cuda.h"

/* Threads of a block; a multiple of the 32 of a warp. */
enum { WLB_BLOCK = 256 };

/* Checks the launch before it. It is used after every launch, in the function that queues the operation `name`. */
#define WLB_CHECK_LAUNCH(device, name) wlb_cuda_check((device), cudaGetLastError(), (name))

/* Returns the number of blocks for n elements in a grid-stride loop: enough to fill any GPU, few enough to be launched
 * at any n. */
static inline unsigned wlb_element_blocks(int64_t n)
{
	const int64_t most = 16384;
	int64_t blocks = (n + WLB_BLOCK - 1) / WLB_BLOCK;
	return (unsigned)(blocks < most ? blocks : most);
}

/* for (int64_t i = this thread's first element; i < n; i += threads of the grid) */
#define WLB_FOR_ELEMENTS(i, n)                                                                                         \
	for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += (int64_t)gridDim.x * blockDim.x)

#endif

/*
 * Starts kernels. Every kernel is started here, by CUDA's typed call and not by <<<>>>, so that the sources are plain
 * C++: nvcc compiles them, and so does a host compiler with headers that have CUDA's names (tests/cuda_host).
 *
 * Shared memory: an array of a fixed size is `static __shared__` in a function that is itself static; an array whose
 * size the launch gives is wlb_dynamic_shared.
 */
#ifndef WLB_CUDA_LAUNCH_CUH
#define WLB_CUDA_LAUNCH_CUH

#include "kernels/cuda/cuda.h"

/* Threads of a block; a multiple of the 32 of a warp. */
enum { WLB_BLOCK = 256 };

/* The dynamic shared memory of a block: wlb_cuda_grid.shared_bytes of it. */
extern __shared__ __align__(1024) unsigned char wlb_dynamic_shared[];

struct wlb_cuda_grid {
	dim3 blocks;
	dim3 threads;                      /* of a block */
	size_t shared_bytes = 0;           /* dynamic shared memory of a block */
	struct wlb_queue *queue = nullptr; /* nullptr: the compute queue */
};

/* Queues kernel(values...) on the grid's queue; each value is converted to the kernel's parameter, as in a call. If
 * the launch is refused, the error is kept with the operation's name for synchronize(), and the kernel does not run. */
template <typename... parameters, typename... arguments>
static inline void wlb_cuda_launch(struct wlb_device *device, const char *operation, const struct wlb_cuda_grid &grid,
                                   void (*kernel)(parameters...), arguments... values)
{
	cudaLaunchConfig_t config = {};
	config.gridDim = grid.blocks;
	config.blockDim = grid.threads;
	config.dynamicSmemBytes = grid.shared_bytes;
	config.stream = wlb_cuda_stream(device, grid.queue);
	wlb_cuda_check(device, cudaLaunchKernelEx(&config, kernel, values...), operation);
}

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

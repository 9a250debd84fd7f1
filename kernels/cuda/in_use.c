/* Whether other processes have the GPU or its memory. */
#include "kernels/cuda/cuda.h"

static _Thread_local cudaError_t newest = cudaSuccess;

void wlb_cuda_note_error(cudaError_t status)
{
	if (status != cudaSuccess)
		newest = status;
}

/* Where another process holds the GPU for itself alone, CUDA says that the device is unavailable; it says the same of a
 * GPU whose compute mode allows no process (PROHIBITED). */
static int is_for_one_process(int index)
{
	int mode = cudaComputeModeDefault;
	return cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, index) == cudaSuccess &&
	       mode == cudaComputeModeExclusiveProcess;
}

int wlb_cuda_is_in_use(int index)
{
	return newest == cudaErrorMemoryAllocation ||
	       (newest == cudaErrorDevicesUnavailable && is_for_one_process(index));
}

int64_t wlb_cuda_free_bytes(void)
{
	size_t free_bytes, total_bytes;
	return cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess ? (int64_t)free_bytes : -1;
}

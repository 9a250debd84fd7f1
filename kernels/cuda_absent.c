/* Refuses to open a CUDA device in a build without CUDA. */
#include "kernels/ops.h"

int wlb_cuda_device_count(void)
{
	return 0;
}

struct wlb_device *wlb_device_open_cuda(int index, enum wlb_dtype compute, enum wlb_dtype main, struct wlb_error *error)
{
	(void)compute, (void)main;
	wlb_fail(error,
	         "device cuda:%d: this build has no CUDA; build where nvcc and NCCL are installed, or use the CPU "
	         "device",
	         index);
	return NULL;
}

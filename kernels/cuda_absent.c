/* Refuses to open a CUDA device in a build without CUDA. */
#include "kernels/ops.h"

int wlb_cuda_device_count(void)
{
	return 0;
}

int wlb_cuda_is_unusable(void)
{
	return 1;
}

int wlb_cuda_is_in_use(int index)
{
	(void)index;
	return 0;
}

int64_t wlb_cuda_free_bytes(void)
{
	return -1;
}

static void fail(int index, struct wlb_error *error)
{
	wlb_fail(error,
	         "device cuda:%d: this build has no CUDA; build where nvcc and NCCL are installed, or use the CPU "
	         "device",
	         index);
}

int wlb_cuda_describe(int index, struct wlb_gpu *gpu, struct wlb_error *error)
{
	(void)gpu;
	fail(index, error);
	return -1;
}

int wlb_cuda_check_kernels(int index, struct wlb_error *error)
{
	fail(index, error);
	return -1;
}

struct wlb_device *wlb_device_open_cuda(int index, enum wlb_dtype compute, enum wlb_dtype master,
                                        struct wlb_error *error)
{
	(void)compute, (void)master;
	fail(index, error);
	return NULL;
}

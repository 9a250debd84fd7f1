/* Opening and closing a CUDA device, and its table of operations. */
#include "kernels/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void close_device(struct wlb_device *device)
{
	struct wlb_cuda *cuda = wlb_cuda_of(device);
	cudaFree(cuda->scratch);
	if (cuda->stream != NULL)
		cudaStreamDestroy(cuda->stream);
	free(cuda);
}

/* No other rank uses the GPU: the time between two points at which the stream is empty is the rank's own. */
static double busy_s(struct wlb_device *device)
{
	(void)device;
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static const struct wlb_ops OPS = {
	.close = close_device,
	.alloc = wlb_cuda_alloc,
	.release = wlb_cuda_release,
	.alloc_host = wlb_cuda_alloc_host,
	.release_host = wlb_cuda_release_host,
	.to_device = wlb_cuda_to_device,
	.to_host_start = wlb_cuda_to_host_start,
	.to_host = wlb_cuda_to_host,
	.copy = wlb_cuda_copy,
	.zero = wlb_cuda_zero,
	.synchronize = wlb_cuda_synchronize,
	.queue_new = wlb_cuda_queue_new,
	.queue_free = wlb_cuda_queue_free,
	.queue_handle = wlb_cuda_queue_handle,
	.event_new = wlb_cuda_event_new,
	.event_free = wlb_cuda_event_free,
	.event_record = wlb_cuda_event_record,
	.queue_wait = wlb_cuda_queue_wait,
	.event_wait = wlb_cuda_event_wait,
	.event_done = wlb_cuda_event_done,
	.event_elapsed_s = wlb_cuda_event_elapsed_s,
	.busy_s = busy_s,
	.rmsnorm_forward = wlb_cuda_rmsnorm_forward,
	.rmsnorm_backward = wlb_cuda_rmsnorm_backward,
	.rope_angles = wlb_cuda_rope_angles,
	.rope = wlb_cuda_rope,
	.swiglu_forward = wlb_cuda_swiglu_forward,
	.swiglu_backward = wlb_cuda_swiglu_backward,
	.gather_rows = wlb_cuda_gather_rows,
	.add = wlb_cuda_add,
	.scale = wlb_cuda_scale,
	.sum_squares = wlb_cuda_sum_squares,
	.adamw = wlb_cuda_adamw,
};

/* Makes the device current for this thread and checks that it is there. */
static int select_device(int index, struct wlb_error *error)
{
	int count = 0;
	cudaError_t status = cudaGetDeviceCount(&count);
	if (status != cudaSuccess)
		return wlb_fail(error, "device cuda:%d: CUDA finds no GPU: %s; check nvidia-smi, or use the CPU device",
		                index, cudaGetErrorString(status));
	if (index < 0 || index >= count)
		return wlb_fail(error, "device cuda:%d: this node has %d GPUs, numbered from 0", index, count);
	status = cudaSetDevice(index);
	if (status != cudaSuccess)
		return wlb_fail(error, "device cuda:%d: cannot use it: %s", index, cudaGetErrorString(status));
	return 0;
}

struct wlb_device *wlb_device_open_cuda(int index, enum wlb_dtype dtype, struct wlb_error *error)
{
	if (dtype != WLB_FLOAT32) {
		wlb_fail(error, "device cuda:%d: element type %s; a CUDA device computes in float32", index,
		         wlb_dtype_name(dtype));
		return NULL;
	}
	if (select_device(index, error) != 0)
		return NULL;
	struct wlb_cuda *cuda = calloc(1, sizeof(*cuda));
	if (cuda == NULL) {
		wlb_fail(error, "device cuda:%d: out of host memory", index);
		return NULL;
	}
	snprintf(cuda->name, sizeof(cuda->name), "cuda:%d", index);
	cuda->device =
		(struct wlb_device){.ops = &OPS, .name = cuda->name, .compute = dtype, .main = dtype, .state = cuda};
	cudaError_t status = cudaStreamCreateWithFlags(&cuda->stream, cudaStreamNonBlocking);
	if (status != cudaSuccess) {
		wlb_fail(error, "device cuda:%d: cannot create a stream: %s", index, cudaGetErrorString(status));
		free(cuda);
		return NULL;
	}
	return &cuda->device;
}

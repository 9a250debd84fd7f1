/* Opening and closing a CUDA device, and its table of operations. */
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/linear.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void close_device(struct wlb_device *device)
{
	struct wlb_cuda *cuda = wlb_cuda_of(device);
	wlb_cuda_linear_close(cuda->linear);
	while (cuda->blocks != NULL)
		wlb_cuda_free(device, cuda->blocks->memory);
	if (cuda->stream != NULL)
		cudaStreamDestroy(cuda->stream);
	free(cuda);
}

/* The time between two points at which the stream is empty. Where ranks share a GPU, the
 * kernels of the other ranks are in it: CUDA does not tell how long each rank had the GPU. */
static double busy_s(struct wlb_device *device)
{
	(void)device;
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Reserves the scratch memory of all operations. They use it one after the other, so that it is as large as the largest
 * need. */
static int reserve(struct wlb_device *device, const struct wlb_largest_pass *largest, struct wlb_error *error)
{
	const size_t needs[] = {
		wlb_cuda_embedding_scratch_bytes(largest->rows, largest->width),
		wlb_cuda_rmsnorm_scratch_bytes(largest->rows, largest->width),
		wlb_cuda_cross_entropy_scratch_bytes(largest->rows),
		wlb_cuda_attention_scratch_bytes(largest->rows, largest->heads),
		wlb_cuda_sum_squares_scratch_bytes(),
		largest->columns > 0 ? wlb_cuda_columns_scratch_bytes(largest->columns) : 0,
	};
	size_t most = 0;
	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++)
		most = needs[i] > most ? needs[i] : most;
	return wlb_cuda_scratch(device, most, "all operations") != NULL ? 0 : wlb_cuda_report(device, error);
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
	.reserve = reserve,
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
	.linear = wlb_cuda_linear_op,
	.linear_d_x = wlb_cuda_linear_d_x_op,
	.linear_d_w = wlb_cuda_linear_d_w_op,
	.embedding_forward = wlb_cuda_embedding_forward,
	.embedding_backward = wlb_cuda_embedding_backward,
	.rmsnorm_forward = wlb_cuda_rmsnorm_forward,
	.rmsnorm_backward = wlb_cuda_rmsnorm_backward,
	.add_bias = wlb_cuda_add_bias,
	.bias_backward = wlb_cuda_bias_backward,
	.group_norm_sums = wlb_cuda_group_norm_sums,
	.group_norm_forward = wlb_cuda_group_norm_forward,
	.group_norm_backward = wlb_cuda_group_norm_backward,
	.rope_angles = wlb_cuda_rope_angles,
	.rope = wlb_cuda_rope,
	.attention_tile_rows = wlb_cuda_attention_tiles,
	.attention_forward = wlb_cuda_attention_forward_op,
	.attention_backward = wlb_cuda_attention_backward_op,
	.swiglu_forward = wlb_cuda_swiglu_forward,
	.swiglu_backward = wlb_cuda_swiglu_backward,
	.geglu_forward = wlb_cuda_geglu_forward,
	.geglu_backward = wlb_cuda_geglu_backward,
	.cross_entropy_statistics = wlb_cuda_cross_entropy_statistics,
	.cross_entropy_gradient = wlb_cuda_cross_entropy_gradient,
	.gather_rows = wlb_cuda_gather_rows,
	.add = wlb_cuda_add,
	.scale = wlb_cuda_scale,
	.softcap = wlb_cuda_softcap,
	.add_gradients = wlb_cuda_add_gradients,
	.sum_squares = wlb_cuda_sum_squares,
	.clip_factor = wlb_cuda_clip_factor,
	.adamw = wlb_cuda_adamw,
};

/* Makes the device current for this thread and checks that it is there. */
static int select_device(int index, struct wlb_error *error)
{
	int count = 0;
	cudaError_t status = cudaGetDeviceCount(&count);
	wlb_cuda_note_error(status);
	if (status != cudaSuccess)
		return wlb_fail(error, "device cuda:%d: CUDA finds no GPU: %s; check nvidia-smi, or use the CPU device",
		                index, cudaGetErrorString(status));
	if (index < 0 || index >= count)
		return wlb_fail(error, "device cuda:%d: this node has %d GPUs, numbered from 0", index, count);
	status = cudaSetDevice(index);
	wlb_cuda_note_error(status);
	if (status != cudaSuccess)
		return wlb_fail(error, "device cuda:%d: cannot use it: %s", index, cudaGetErrorString(status));
	return 0;
}

static int check_types(int index, enum wlb_dtype compute, enum wlb_dtype master, struct wlb_error *error)
{
	if (compute != WLB_FLOAT32 && compute != WLB_BFLOAT16)
		return wlb_fail(error, "device cuda:%d: element type %s: a CUDA device computes in float32 or bfloat16",
		                index, wlb_dtype_name(compute));
	if (master != WLB_FLOAT32)
		return wlb_fail(error, "device cuda:%d: master weights of type %s: they are float32", index,
		                wlb_dtype_name(master));
	return 0;
}

/* Makes the compute queue and loads what the device needs; what was made until a failure is in `cuda`. */
static int start(struct wlb_cuda *cuda, int index, struct wlb_error *error)
{
	struct wlb_device *device = &cuda->device;
	struct cudaDeviceProp properties;
	cudaError_t status = cudaDeviceGetPCIBusId(device->hardware, (int)sizeof(device->hardware), index);
	if (status == cudaSuccess)
		status = cudaGetDeviceProperties(&properties, index);
	wlb_cuda_note_error(status);
	if (status != cudaSuccess)
		return wlb_fail(error, "device cuda:%d: cannot read its properties: %s", index,
		                cudaGetErrorString(status));
	cuda->capability = 10 * properties.major + properties.minor;
	cuda->processors = properties.multiProcessorCount;
	status = cudaStreamCreateWithFlags(&cuda->stream, cudaStreamNonBlocking);
	wlb_cuda_note_error(status);
	if (status != cudaSuccess)
		return wlb_fail(error, "device cuda:%d: cannot create a stream: %s", index, cudaGetErrorString(status));
	cuda->linear = wlb_cuda_linear_open(device, cuda->stream, error);
	return cuda->linear != NULL ? 0 : -1;
}

struct wlb_device *wlb_device_open_cuda(int index, enum wlb_dtype compute, enum wlb_dtype master,
                                        struct wlb_error *error)
{
	if (check_types(index, compute, master, error) != 0 || select_device(index, error) != 0 ||
	    wlb_cuda_check_kernels(index, error) != 0)
		return NULL;
	struct wlb_cuda *cuda = calloc(1, sizeof(*cuda));
	if (cuda == NULL) {
		wlb_fail(error, "device cuda:%d: out of host memory", index);
		return NULL;
	}
	cuda->index = index;
	snprintf(cuda->name, sizeof(cuda->name), "cuda:%d", index);
	cuda->device = (struct wlb_device){.ops = &OPS,
	                                   .name = cuda->name,
	                                   .compute = compute,
	                                   .master = master,
	                                   .gradients = master,
	                                   .state = cuda};
	if (start(cuda, index, error) == 0)
		return &cuda->device;
	close_device(&cuda->device);
	return NULL;
}

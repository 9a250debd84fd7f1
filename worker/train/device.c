#include "worker/train/device.h"

#include <sched.h>
#include <stdlib.h>

#include "worker/model/transformer.h"

/* Returns this rank's share of the CPUs that it may use. */
static int default_threads(const struct wlb_launch *launch)
{
	cpu_set_t set;
	int cpus = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
	return cpus > launch->local_size ? cpus / launch->local_size : 1;
}

int wlb_own_gpu(const struct wlb_launch *launch)
{
	int count = wlb_cuda_device_count();
	return count > 0 ? launch->local_rank % count : launch->local_rank;
}

/* By default CUDA loads a kernel when it is first launched, for which it may wait until the GPU has done all that is
 * queued (CUDA C++ Programming Guide, "Lazy Loading"). A receive over NCCL may be queued that ends only after the peer
 * has what this rank computes with that kernel: both would wait for ever. A setting of the user is kept, since to load
 * all kernels at the start takes memory of the GPU. */
static void load_kernels_at_start(void)
{
	setenv("CUDA_MODULE_LOADING", "EAGER", 0);
}

struct wlb_device *wlb_open_device(const struct wlb_launch *launch, enum wlb_device_kind kind, enum wlb_dtype dtype,
                                   enum wlb_main_grads main_grads, int threads, struct wlb_error *error)
{
	int host_threads = threads > 0 ? threads : default_threads(launch);
	if (kind == WLB_DEVICE_CUDA && launch->size > 1)
		load_kernels_at_start(); /* before CUDA is first called */
	enum wlb_dtype master = dtype == WLB_BFLOAT16 ? WLB_FLOAT32 : dtype;
	struct wlb_device *device = kind == WLB_DEVICE_CUDA
	                                    ? wlb_device_open_cuda(wlb_own_gpu(launch), dtype, master, error)
	                                    : wlb_device_open_cpu(dtype, host_threads, error);
	if (device != NULL && wlb_transformer_check_device(device, error) == 0) {
		device->host_threads = host_threads;
		if (main_grads == WLB_MAIN_GRADS_BF16)
			device->gradients = device->compute;
		return device;
	}
	wlb_device_close(device);
	return NULL;
}

int wlb_is_gpu_at_fault(const struct wlb_launch *launch, enum wlb_device_kind kind, enum wlb_dtype dtype)
{
	struct wlb_error none;
	/* CUDA computes in all types but float64. */
	return kind == WLB_DEVICE_CUDA && dtype != WLB_FLOAT64 && wlb_cuda_device_count() > 0 &&
	       wlb_cuda_check_kernels(wlb_own_gpu(launch), &none) == 0;
}

int wlb_queue_depth(const struct wlb_device *device)
{
	return device->host_memory ? 0 : 1;
}

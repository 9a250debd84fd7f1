/* Allocates and copies memory of a CUDA device, and keeps the first error until synchronize() reports it. */
#include "kernels/cuda/cuda.h"

#include <stdarg.h>
#include <stdio.h>

void wlb_cuda_fail(struct wlb_device *device, const char *format, ...)
{
	struct wlb_cuda *cuda = wlb_cuda_of(device);
	if (cuda->failed)
		return;
	cuda->failed = 1;
	va_list values;
	va_start(values, format);
	vsnprintf(cuda->error.message, sizeof(cuda->error.message), format, values);
	va_end(values);
	wlb_fail_in(&cuda->error, "%s", cuda->name);
}

int wlb_cuda_check(struct wlb_device *device, cudaError_t status, const char *operation)
{
	if (status == cudaSuccess)
		return 1;
	wlb_cuda_fail(device, "%s: %s (%s)", operation, cudaGetErrorString(status), cudaGetErrorName(status));
	return 0;
}

void wlb_cuda_count_host_wait(struct wlb_device *device)
{
	__atomic_add_fetch(&device->host_waits, 1, __ATOMIC_RELAXED);
}

int wlb_cuda_synchronize(struct wlb_device *device, struct wlb_error *error)
{
	wlb_cuda_count_host_wait(device);
	wlb_cuda_check(device, cudaStreamSynchronize(wlb_cuda_of(device)->stream), "synchronize");
	return wlb_cuda_report(device, error);
}

int wlb_cuda_report(struct wlb_device *device, struct wlb_error *error)
{
	struct wlb_cuda *cuda = wlb_cuda_of(device);
	if (!cuda->failed)
		return 0;
	cuda->failed = 0;
	return wlb_fail(error, "%s", cuda->error.message);
}

/* Memory is cleared on the stream that will use it, since that does not wait for cudaMemset on the default stream. */
void *wlb_cuda_alloc(struct wlb_device *device, size_t bytes, struct wlb_error *error)
{
	struct wlb_cuda *cuda = wlb_cuda_of(device);
	void *memory = NULL;
	cudaError_t status = cudaMalloc(&memory, bytes > 0 ? bytes : 1);
	if (status == cudaSuccess)
		status = cudaMemsetAsync(memory, 0, bytes, cuda->stream);
	if (status == cudaSuccess)
		return memory;
	wlb_fail(error, "cannot allocate %zu bytes on %s: %s; use more ranks or a smaller micro-batch", bytes,
	         cuda->name, cudaGetErrorString(status));
	cudaFree(memory);
	return NULL;
}

/* cudaFree waits for everything that is queued. */
void wlb_cuda_release(struct wlb_device *device, void *memory)
{
	wlb_cuda_check(device, cudaFree(memory), "release");
}

void *wlb_cuda_alloc_host(struct wlb_device *device, size_t bytes, struct wlb_error *error)
{
	void *memory = NULL;
	cudaError_t status = cudaHostAlloc(&memory, bytes > 0 ? bytes : 1, cudaHostAllocDefault);
	if (status == cudaSuccess)
		return memory;
	wlb_fail(error, "cannot allocate %zu bytes of pinned host memory for %s: %s", bytes, wlb_cuda_of(device)->name,
	         cudaGetErrorString(status));
	return NULL;
}

/* cudaFreeHost waits for everything that is queued, too. */
void wlb_cuda_release_host(struct wlb_device *device, void *memory)
{
	wlb_cuda_check(device, cudaFreeHost(memory), "release_host");
}

/* From pageable memory it returns when from_host may be used again; from pinned memory it does not wait. */
void wlb_cuda_to_device(struct wlb_device *device, struct wlb_queue *queue, void *to, const void *from_host,
                        size_t bytes)
{
	wlb_cuda_check(device,
	               cudaMemcpyAsync(to, from_host, bytes, cudaMemcpyHostToDevice, wlb_cuda_stream(device, queue)),
	               "to_device");
}

void wlb_cuda_to_host_start(struct wlb_device *device, struct wlb_queue *queue, void *to_host, const void *from,
                            size_t bytes)
{
	wlb_cuda_check(device,
	               cudaMemcpyAsync(to_host, from, bytes, cudaMemcpyDeviceToHost, wlb_cuda_stream(device, queue)),
	               "to_host_start");
}

void wlb_cuda_to_host(struct wlb_device *device, void *to_host, const void *from, size_t bytes)
{
	struct wlb_cuda *cuda = wlb_cuda_of(device);
	wlb_cuda_count_host_wait(device);
	cudaError_t status = cudaMemcpyAsync(to_host, from, bytes, cudaMemcpyDeviceToHost, cuda->stream);
	if (status == cudaSuccess)
		status = cudaStreamSynchronize(cuda->stream);
	wlb_cuda_check(device, status, "to_host");
}

void wlb_cuda_copy(struct wlb_device *device, void *to, const void *from, size_t bytes)
{
	wlb_cuda_check(device, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, wlb_cuda_of(device)->stream),
	               "copy");
}

void wlb_cuda_zero(struct wlb_device *device, void *memory, size_t bytes)
{
	wlb_cuda_check(device, cudaMemsetAsync(memory, 0, bytes, wlb_cuda_of(device)->stream), "zero");
}

void *wlb_cuda_scratch(struct wlb_device *device, size_t bytes, const char *operation)
{
	struct wlb_cuda *cuda = wlb_cuda_of(device);
	if (bytes <= cuda->scratch_bytes)
		return cuda->scratch;
	/* cudaFree waits for the kernels that still use the old one. */
	wlb_cuda_check(device, cudaFree(cuda->scratch), operation);
	cuda->scratch = NULL;
	cuda->scratch_bytes = 0;
	if (wlb_cuda_check(device, cudaMalloc(&cuda->scratch, bytes), operation))
		cuda->scratch_bytes = bytes;
	return cuda->scratch;
}

/* Allocates and copies memory of a CUDA device, and keeps the first error until synchronize() reports it. */
#include "kernels/cuda/cuda.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

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
	wlb_cuda_note_error(status);
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

/* Keeps how much memory there was when `bytes` of it were refused. */
static void fail_for_memory(struct wlb_device *device, size_t bytes, struct wlb_error *error)
{
	struct wlb_no_memory *none = &device->no_memory;
	*none = (struct wlb_no_memory){.asked_bytes = bytes};
	if (cudaMemGetInfo(&none->free_bytes, &none->total_bytes) != cudaSuccess)
		none->free_bytes = none->total_bytes = 0;
	wlb_fail(error, "cannot allocate %.3f GB on %s: out of memory: %.3f of its %.3f GB are free",
	         1e-9 * (double)bytes, device->name, 1e-9 * (double)none->free_bytes, 1e-9 * (double)none->total_bytes);
}

void *wlb_cuda_malloc(struct wlb_device *device, size_t bytes, struct wlb_error *error)
{
	struct wlb_cuda *cuda = wlb_cuda_of(device);
	struct wlb_cuda_block *block = calloc(1, sizeof(*block));
	if (block == NULL) {
		wlb_fail(error, "out of host memory for an allocation on %s", device->name);
		return NULL;
	}
	block->bytes = bytes > 0 ? bytes : 1;
	cudaError_t status = cudaMalloc(&block->memory, block->bytes);
	if (status == cudaSuccess) {
		block->next = cuda->blocks;
		cuda->blocks = block;
		device->allocated_bytes += (int64_t)block->bytes;
		return block->memory;
	}
	free(block);
	wlb_cuda_note_error(status);
	cudaGetLastError(); /* it would be reported once more by the next launch */
	if (status == cudaErrorMemoryAllocation)
		fail_for_memory(device, bytes, error);
	else
		wlb_fail(error, "cannot allocate %zu bytes on %s: %s", bytes, device->name, cudaGetErrorString(status));
	return NULL;
}

cudaError_t wlb_cuda_free(struct wlb_device *device, void *memory)
{
	struct wlb_cuda_block **link = &wlb_cuda_of(device)->blocks;
	while (*link != NULL && (*link)->memory != memory)
		link = &(*link)->next;
	struct wlb_cuda_block *block = *link;
	if (block != NULL) {
		*link = block->next;
		device->allocated_bytes -= (int64_t)block->bytes;
		free(block);
	}
	return cudaFree(memory);
}

/* Memory is cleared on the stream that will use it, since that does not wait for cudaMemset on the default stream. */
void *wlb_cuda_alloc(struct wlb_device *device, size_t bytes, struct wlb_error *error)
{
	void *memory = wlb_cuda_malloc(device, bytes, error);
	if (memory == NULL)
		return NULL;
	cudaError_t status = cudaMemsetAsync(memory, 0, bytes, wlb_cuda_of(device)->stream);
	if (status == cudaSuccess)
		return memory;
	wlb_cuda_note_error(status);
	wlb_fail(error, "cannot clear %zu bytes on %s: %s", bytes, device->name, cudaGetErrorString(status));
	wlb_cuda_free(device, memory);
	return NULL;
}

void wlb_cuda_release(struct wlb_device *device, void *memory)
{
	wlb_cuda_check(device, wlb_cuda_free(device, memory), "release");
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
	/* Kernels may still use the old one: giving it back waits for them. */
	wlb_cuda_check(device, wlb_cuda_free(device, cuda->scratch), operation);
	struct wlb_error error = {0};
	cuda->scratch = wlb_cuda_malloc(device, bytes, &error);
	cuda->scratch_bytes = cuda->scratch != NULL ? bytes : 0;
	if (cuda->scratch == NULL)
		wlb_cuda_fail(device, "scratch memory of %s: %s", operation, error.message);
	return cuda->scratch;
}

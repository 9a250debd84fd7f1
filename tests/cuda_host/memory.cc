/*
 * Device memory and pinned host memory: blocks of the heap, so that AddressSanitizer finds an access past their ends
 * and after they were freed. New memory is all ones: a number in it is not a number, an index is -1.
 */
#include "tests/cuda_host/runtime.h"

#include <cuda_runtime.h>

#include "tests/cuda_host/report.h"

#include <map>
#include <stdlib.h>
#include <string.h>

namespace
{
struct allocation {
	size_t bytes;
	cuda_host::memory_kind kind;
};

const size_t ALIGNMENT = 256; /* CUDA's */
const size_t MOST_BYTES =
	(size_t)16 << 30; /* of the device, unless CUDA_HOST_DEVICE_BYTES says less; of pinned memory */

std::map<const char *, allocation> allocations;
size_t device_bytes;

/* The allocation in which or at the end of which an address is; allocations.end() if there is none. */
std::map<const char *, allocation>::const_iterator find(const void *memory)
{
	auto after = allocations.upper_bound(static_cast<const char *>(memory));
	if (after == allocations.begin())
		return allocations.end();
	const auto at = --after;
	return static_cast<const char *>(memory) <= at->first + at->second.bytes ? at : allocations.end();
}

/* The memory of the device; an allocation beyond it fails. */
size_t total_bytes()
{
	const char *given = getenv("CUDA_HOST_DEVICE_BYTES");
	return given != nullptr ? strtoull(given, nullptr, 10) : MOST_BYTES;
}

size_t left_bytes()
{
	return total_bytes() > device_bytes ? total_bytes() - device_bytes : 0;
}

cudaError_t allocate(void **memory, size_t bytes, cuda_host::memory_kind kind)
{
	const cuda_host::guard guard(cuda_host::lock);
	*memory = nullptr;
	cuda_host::count(&cuda_host_counts::memory);
	if (bytes == 0)
		return cudaSuccess;
	const size_t most = kind == cuda_host::memory_kind::device ? left_bytes() : MOST_BYTES;
	if (bytes > most || posix_memalign(memory, ALIGNMENT, bytes) != 0) {
		*memory = nullptr;
		return cuda_host::result(cudaErrorMemoryAllocation);
	}
	memset(*memory, 0xff, bytes);
	allocations[static_cast<char *>(*memory)] = {bytes, kind};
	if (kind == cuda_host::memory_kind::device)
		device_bytes += bytes;
	return cudaSuccess;
}

/* Waits for everything that is queued, as CUDA does. */
cudaError_t release(void *memory, cuda_host::memory_kind kind)
{
	const cuda_host::guard guard(cuda_host::lock);
	cuda_host::count(&cuda_host_counts::memory);
	cuda_host::stream_finish_all();
	if (memory == nullptr)
		return cudaSuccess;
	const auto at = allocations.find(static_cast<char *>(memory));
	if (at == allocations.end() || at->second.kind != kind)
		return cuda_host::result(cudaErrorInvalidValue);
	if (kind == cuda_host::memory_kind::device)
		device_bytes -= at->second.bytes;
	allocations.erase(at);
	free(memory);
	return cudaSuccess;
}
} // namespace

cuda_host::memory_kind cuda_host::memory_of(const void *memory, size_t bytes)
{
	const auto at = find(memory);
	if (at == allocations.end())
		return memory_kind::pageable;
	const size_t offset = (size_t)(static_cast<const char *>(memory) - at->first);
	return bytes <= at->second.bytes - offset ? at->second.kind : memory_kind::pageable;
}

void cuda_host::check_pointer(const void *kernel, int argument, const void *pointer)
{
	const guard guard(lock);
	if (pointer != nullptr && find(pointer) == allocations.end())
		report("kernel %s, argument %d: %p is neither device memory nor pinned host memory",
		       report_kernel_name(kernel).c_str(), argument, pointer);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *all_bytes)
{
	const cuda_host::guard guard(cuda_host::lock);
	*free_bytes = left_bytes();
	*all_bytes = total_bytes();
	return cudaSuccess;
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
	return allocate(memory, bytes, cuda_host::memory_kind::device);
}

cudaError_t cudaFree(void *memory)
{
	return release(memory, cuda_host::memory_kind::device);
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned)
{
	return allocate(memory, bytes, cuda_host::memory_kind::pinned);
}

cudaError_t cudaFreeHost(void *memory)
{
	return release(memory, cuda_host::memory_kind::pinned);
}

/* Copies and fills, on a stream. */
#include "tests/cuda_host/runtime.h"

#include <memory>
#include <string.h>
#include <vector>

using cuda_host::memory_kind;

/* Whether both ranges are what the kind of the copy says; each wholly within its allocation. */
static bool matches(const void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
	const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
	const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
	return to_device == (cuda_host::memory_of(to, bytes) == memory_kind::device) &&
	       from_device == (cuda_host::memory_of(from, bytes) == memory_kind::device);
}

/* From pageable memory CUDA copies to a buffer of its own before it returns; to pageable memory it returns when the
 * copy has ended. Pinned memory is read and written when the stream reaches the copy. */
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	const cuda_host::guard guard(cuda_host::lock);
	if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDeviceToDevice)
		return cuda_host::result(cudaErrorInvalidMemcpyDirection);
	if (bytes == 0)
		return cudaSuccess;
	if (!matches(to, from, bytes, kind))
		return cuda_host::result(cudaErrorInvalidValue);
	if (cuda_host::memory_of(from, bytes) == memory_kind::pageable) {
		const char *first = static_cast<const char *>(from);
		cuda_host::count(&cuda_host_counts::waits);
		const auto own = std::make_shared<std::vector<char>>(first, first + bytes);
		return cuda_host::stream_queue(stream, [to, own] { memcpy(to, own->data(), own->size()); });
	}
	const cudaError_t status = cuda_host::stream_queue(stream, [to, from, bytes] { memcpy(to, from, bytes); });
	if (status == cudaSuccess && cuda_host::memory_of(to, bytes) == memory_kind::pageable)
		return cudaStreamSynchronize(stream);
	return status;
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream)
{
	const cuda_host::guard guard(cuda_host::lock);
	if (bytes == 0)
		return cudaSuccess;
	if (cuda_host::memory_of(memory, bytes) != memory_kind::device)
		return cuda_host::result(cudaErrorInvalidValue);
	return cuda_host::stream_queue(stream, [memory, value, bytes] { memset(memory, value, bytes); });
}

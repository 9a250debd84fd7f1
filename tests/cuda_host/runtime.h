/*
 * What the functions of the runtime API share: the lock, the last error, the memory and the streams.
 */
#ifndef CUDA_HOST_RUNTIME_H
#define CUDA_HOST_RUNTIME_H

#include <cuda_runtime_api.h>

#include <functional>
#include <mutex>

namespace cuda_host
{
/* Every function of the API holds it: kernels of several threads of the system run one after the other. */
typedef std::lock_guard<std::recursive_mutex> guard;
extern std::recursive_mutex lock;

/* Keeps an error for cudaGetLastError of this thread. Returns it. */
cudaError_t result(cudaError_t status);

enum class memory_kind { pageable, pinned, device };

/* What [memory, memory + bytes) is. A range that leaves its allocation, or begins in none, is pageable. */
memory_kind memory_of(const void *memory, size_t bytes);

/* Queues work on a stream; it has not run when this returns, unless the queues are immediate. */
cudaError_t stream_queue(cudaStream_t stream, std::function<void()> work);

/* Runs all that is queued on every stream. */
void stream_finish_all();
} // namespace cuda_host

#endif

/*
 * What the functions of the runtime API share: the lock, the last error, the memory and the streams.
 */
#ifndef CUDA_HOST_RUNTIME_H
#define CUDA_HOST_RUNTIME_H

#include <cuda_runtime_api.h>

#include "tests/cuda_host/count.h"

#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace cuda_host
{
/* A mutex that its holder can give up for a moment, however often it has locked it. */
class yielding_mutex
{
      public:
	void lock();
	void unlock();
	/* Other threads of the system may hold it for some 50 us. */
	void yield();

      private:
	std::recursive_mutex mutex;
	unsigned depth = 0;
};

/* Every function of the API holds it: kernels of several threads of the system run one after the other. Only a function
 * that waits for other processes yields it. */
typedef std::lock_guard<yielding_mutex> guard;
extern yielding_mutex lock;

/* Adds 1 to that member of the counts. */
void count(long cuda_host_counts::*what);

/* Keeps an error for cudaGetLastError of this thread. Returns it. */
cudaError_t result(cudaError_t status);

enum class memory_kind { pageable, pinned, device };

/* What [memory, memory + bytes) is. A range that leaves its allocation, or begins in none, is pageable. */
memory_kind memory_of(const void *memory, size_t bytes);

/* Queues work on a stream; it has not run when this returns, unless the queues are immediate. */
cudaError_t stream_queue(cudaStream_t stream, std::function<void()> work);

/* Work that waits for other processes. */
class remote_work
{
      public:
	virtual ~remote_work() = default;
	/* Called again and again while it is the next of its stream: begins it once, and returns whether run() can end
	 * it. */
	virtual bool ready() = 0;
	virtual void run() = 0;
	/* For what it waits. */
	virtual std::string describe() const = 0;
};

cudaError_t stream_queue_remote(cudaStream_t stream, std::shared_ptr<remote_work> work);

/* Runs an operation of some stream. Returns false if none can run. */
bool stream_advance();

/* Runs all that is queued on every stream. */
void stream_finish_all();

/* Runs operations of streams until done() returns true; yields the lock where it must wait for other processes. If no
 * operation could run for wait_bound_s() the test ends with a report: `waiting` is what the caller waits for. */
void stream_run_until(const std::function<bool()> &done, const char *waiting);

/* CUDA_HOST_WAIT_S of the environment, or 600. */
double wait_bound_s();
} // namespace cuda_host

#endif

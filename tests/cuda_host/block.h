/*
 * The threads of one block, as fibers. A thread runs until it waits or returns; then the next one that can run is
 * chosen in the order of order.h: the first, the last, or any. So of two threads that no barrier orders, each runs
 * before the other in some order, and a race between them changes the result.
 *
 * A thread that waits for one that never comes ends the test: the report names both.
 */
#ifndef CUDA_HOST_BLOCK_H
#define CUDA_HOST_BLOCK_H

#include <cuda_runtime.h>

#include <functional>
#include <string>
#include <vector>

namespace cuda_host
{
/* Calls run() once for each thread of a block of `threads`, at most 1024. */
void block_run(dim3 threads, const std::function<void()> &run);

/* Does the work of an operation of a warp once all its lanes are there: lanes[i] is what lane i gave, NULL where i is
 * not in the mask. Two calls belong together where mask and this function are the same. */
typedef void (*warp_operation)(void *const lanes[32]);

/* The calling thread waits until every lane of `mask` has called this with the same mask and operation. `name` is for
 * reports. */
void block_warp_operation(const char *name, unsigned mask, warp_operation operation, void *mine);

/* Threads of a block that wait for one thing, which the derived class is. */
class waiting_threads
{
      public:
	virtual ~waiting_threads() = default;
	/* What a thread of them does, for reports: "waits for ..., which lacks ...". */
	virtual std::string describe() const = 0;
	/* Does for them what a GPU does beside its threads, if it can, and wakes them if their wait has ended. Returns
	 * whether it could. It is called as late as it can be: when no thread of the block can run. */
	virtual bool advance();

	std::vector<unsigned> threads; /* their numbers, in the order in which they came */
};

/* The calling thread waits until others, or advance(), wake the list. */
void block_wait(waiting_threads &list);

/* All threads of the list run on. */
void block_wake(waiting_threads &list);

/* How many blocks have begun. */
uint64_t block_number();

/* The number of the calling thread in its block: x changes fastest. */
unsigned block_thread();
} // namespace cuda_host

#endif

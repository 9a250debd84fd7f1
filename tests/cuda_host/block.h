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

/* How many blocks have begun. */
uint64_t block_number();

/* The number of the calling thread in its block: x changes fastest. */
unsigned block_thread();
} // namespace cuda_host

#endif

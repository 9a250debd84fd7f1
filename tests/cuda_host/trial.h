/*
 * Runs a program of kernels in every order of order.h, or in a process of its own that may end with a report.
 */
#ifndef CUDA_HOST_TRIAL_H
#define CUDA_HOST_TRIAL_H

#include <cuda_runtime.h>

#include <functional>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string>
#include <vector>

extern "C" {
#include <cmocka.h> /* it does not say so itself */
}

namespace cuda_host
{
/* Allocates, queues, waits, and returns what it computed. */
typedef std::function<std::vector<int>()> program;

/* Runs the program once in each order; the orders are ascending and immediate after it. Returns the results that
 * differ, each once: one if the program has no race. */
std::vector<std::vector<int>> trial_results(const program &run);

/* Runs the program, ascending and immediate, in a process of its own, for 30 s at most. Returns what it wrote on
 * standard error, and whether it ended well. */
struct trial_end {
	bool well;
	std::string text;
};
trial_end trial_in_process(const program &run);

/* Device memory of `count` ints, with the values of `from` if it is given. */
int *trial_memory(size_t count, const std::vector<int> &from = {});

/* Waits for everything that is queued, and returns the ints, which it frees. */
std::vector<int> trial_take(int *memory, size_t count);

/* A stream that lives as long as the program. */
cudaStream_t trial_stream(size_t index = 0);

/* Queues the kernel on trial_stream(). */
template <typename... parameters, typename... arguments>
cudaError_t trial_launch(dim3 blocks, dim3 threads, size_t shared_bytes, void (*kernel)(parameters...),
                         arguments... values)
{
	const cudaLaunchConfig_t config = {blocks, threads, shared_bytes, trial_stream()};
	return cudaLaunchKernelEx(&config, kernel, values...);
}
} // namespace cuda_host

#endif

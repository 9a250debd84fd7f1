/* Launches: the limits of a device of compute capability 9.0, and the blocks of a grid, one after the other. */
#include "tests/cuda_host/block.h"
#include "tests/cuda_host/hopper.h"
#include "tests/cuda_host/order.h"
#include "tests/cuda_host/report.h"
#include "tests/cuda_host/runtime.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <map>
#include <sanitizer/asan_interface.h>
#include <set>
#include <vector>

namespace
{
const unsigned MOST_THREADS = 1024, MOST_THREADS_Z = 64;
const unsigned MOST_BLOCKS_X = 0x7fffffff, MOST_BLOCKS_YZ = 65535;
const size_t SHARED_BYTES = 48 * 1024; /* dynamic shared memory of a block, unless the kernel asks for more */
using cuda_host::MOST_SHARED_BYTES;

std::map<const void *, size_t> shared_limits; /* of the kernels that asked */

bool is_valid(const dim3 &size, unsigned most_x, unsigned most_y, unsigned most_z)
{
	return size.x >= 1 && size.x <= most_x && size.y >= 1 && size.y <= most_y && size.z >= 1 && size.z <= most_z;
}

/* With CUDA_HOST_NO_IMAGE the program was built for other GPUs. */
bool has_image()
{
	return getenv("CUDA_HOST_NO_IMAGE") == nullptr;
}

/* With CUDA_HOST_LAZY the first launch of a kernel waits for all that is queued, for which CUDA allows itself time where
 * it loads kernels when they are first launched, which CUDA_MODULE_LOADING=EAGER prevents. */
void load(const void *kernel)
{
	static std::set<const void *> loaded;
	const char *loading = getenv("CUDA_MODULE_LOADING");
	const bool is_eager = loading != nullptr && strcmp(loading, "EAGER") == 0;
	if (getenv("CUDA_HOST_LAZY") != nullptr && !is_eager && loaded.insert(kernel).second)
		cuda_host::stream_finish_all();
}

cudaError_t check(const cudaLaunchConfig_t &config, const void *kernel)
{
	const dim3 &threads = config.blockDim;
	const auto limit = shared_limits.find(kernel);
	if (!has_image())
		return cudaErrorNoKernelImageForDevice;
	if (!is_valid(config.gridDim, MOST_BLOCKS_X, MOST_BLOCKS_YZ, MOST_BLOCKS_YZ) ||
	    !is_valid(threads, MOST_THREADS, MOST_THREADS, MOST_THREADS_Z) ||
	    threads.x * threads.y * threads.z > MOST_THREADS)
		return cudaErrorInvalidConfiguration;
	if (config.dynamicSmemBytes > (limit == shared_limits.end() ? SHARED_BYTES : limit->second))
		return cudaErrorInvalidValue;
	return cudaSuccess;
}

/* The numbers of the blocks in the order in which they run. */
std::vector<unsigned> block_order(size_t count)
{
	std::vector<unsigned> numbers(count);
	for (size_t i = 0; i < count; i++)
		numbers[i] = (unsigned)i;
	if (cuda_host_get_orders()->order == CUDA_HOST_DESCENDING)
		std::reverse(numbers.begin(), numbers.end());
	else if (cuda_host_get_orders()->order == CUDA_HOST_RANDOM)
		for (size_t i = count; i > 1; i--)
			std::swap(numbers[i - 1], numbers[cuda_host_random(i)]);
	return numbers;
}
} // namespace

/* The dynamic shared memory of the block that runs; what the launch did not ask for is poisoned. */
__align__(1024) unsigned char wlb_dynamic_shared[MOST_SHARED_BYTES];

/* The linker's names for the ends of the section of the static shared arrays. */
extern "C" __attribute__((weak)) unsigned char __start_cuda_shared[], __stop_cuda_shared[];

/* Sets shared memory to all ones, as new device memory is. Between the static arrays lie the sanitizer's red zones, so
 * that memset, which the sanitizer replaces, cannot be used. */
static void clear_shared(size_t dynamic_bytes)
{
	memset(wlb_dynamic_shared, 0xff, dynamic_bytes);
	for (volatile unsigned char *byte = __start_cuda_shared; byte < __stop_cuda_shared; byte++)
		*byte = 0xff;
}

static void run_grid(const cudaLaunchConfig_t &config, const void *kernel, const std::function<void()> &run)
{
	const dim3 &grid = config.gridDim;
	cuda_host::report_set_kernel(kernel);
	__asan_poison_memory_region(wlb_dynamic_shared, MOST_SHARED_BYTES);
	__asan_unpoison_memory_region(wlb_dynamic_shared, config.dynamicSmemBytes);
	gridDim = grid;
	for (const unsigned number : block_order((size_t)grid.x * grid.y * grid.z)) {
		blockIdx = {number % grid.x, number / grid.x % grid.y, number / grid.x / grid.y};
		clear_shared(config.dynamicSmemBytes);
		cuda_host::block_run(config.blockDim, run);
	}
	cuda_host::report_set_kernel(nullptr);
}

cudaError_t cuda_host::launch(const cudaLaunchConfig_t *config, const void *kernel, std::function<void()> run)
{
	const guard guard(lock);
	const cudaError_t status = check(*config, kernel);
	if (status != cudaSuccess)
		return result(status);
	load(kernel);
	return stream_queue(config->stream, [copy = *config, kernel, run] { run_grid(copy, kernel, run); });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *)
{
	attributes->numRegs = 0;
	return cuda_host::result(has_image() ? cudaSuccess : cudaErrorNoKernelImageForDevice);
}

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value)
{
	const cuda_host::guard guard(cuda_host::lock);
	if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 || (size_t)value > MOST_SHARED_BYTES)
		return cuda_host::result(cudaErrorInvalidValue);
	shared_limits[kernel] = (size_t)value;
	return cudaSuccess;
}

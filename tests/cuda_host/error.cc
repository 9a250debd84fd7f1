/* Errors of the runtime API, and the device. */
#include "tests/cuda_host/runtime.h"

#include <chrono>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <thread>
#include <unistd.h>

static thread_local cudaError_t last_error = cudaSuccess;

namespace cuda_host
{
yielding_mutex lock;

void yielding_mutex::lock()
{
	mutex.lock();
	depth++;
}

void yielding_mutex::unlock()
{
	depth--;
	mutex.unlock();
}

void yielding_mutex::yield()
{
	const unsigned held = depth;
	for (unsigned i = 0; i < held; i++)
		unlock();
	std::this_thread::sleep_for(std::chrono::microseconds(50));
	for (unsigned i = 0; i < held; i++)
		lock();
}
} // namespace cuda_host

cudaError_t cuda_host::result(cudaError_t status)
{
	if (status != cudaSuccess)
		last_error = status;
	return status;
}

cudaError_t cudaGetLastError(void)
{
	const cudaError_t error = last_error;
	last_error = cudaSuccess;
	return error;
}

const char *cudaGetErrorName(cudaError_t error)
{
	switch (error) {
	case cudaSuccess:
		return "cudaSuccess";
	case cudaErrorInvalidValue:
		return "cudaErrorInvalidValue";
	case cudaErrorMemoryAllocation:
		return "cudaErrorMemoryAllocation";
	case cudaErrorInvalidConfiguration:
		return "cudaErrorInvalidConfiguration";
	case cudaErrorInvalidMemcpyDirection:
		return "cudaErrorInvalidMemcpyDirection";
	case cudaErrorInsufficientDriver:
		return "cudaErrorInsufficientDriver";
	case cudaErrorInvalidDevice:
		return "cudaErrorInvalidDevice";
	case cudaErrorInvalidResourceHandle:
		return "cudaErrorInvalidResourceHandle";
	case cudaErrorNotReady:
		return "cudaErrorNotReady";
	}
	return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
	switch (error) {
	case cudaSuccess:
		return "no error";
	case cudaErrorInvalidValue:
		return "invalid argument";
	case cudaErrorMemoryAllocation:
		return "out of memory";
	case cudaErrorInvalidConfiguration:
		return "invalid configuration argument";
	case cudaErrorInvalidMemcpyDirection:
		return "invalid copy direction for memcpy";
	case cudaErrorInsufficientDriver:
		return "CUDA driver version is insufficient for CUDA runtime version";
	case cudaErrorInvalidDevice:
		return "invalid device ordinal";
	case cudaErrorInvalidResourceHandle:
		return "invalid resource handle";
	case cudaErrorNotReady:
		return "device not ready";
	}
	return "unrecognized error code";
}

/* With CUDA_HOST_DRIVER=none there is no driver, which the runtime library reports as one that is too old. */
cudaError_t cudaGetDeviceCount(int *count)
{
	const char *driver = getenv("CUDA_HOST_DRIVER");
	const bool is_absent = driver != nullptr && strcmp(driver, "none") == 0;
	*count = is_absent ? 0 : 1;
	return cuda_host::result(is_absent ? cudaErrorInsufficientDriver : cudaSuccess);
}

/* Every process has a GPU of its own, unless CUDA_HOST_GPU gives its address. */
cudaError_t cudaDeviceGetPCIBusId(char *address, int length, int)
{
	const char *given = getenv("CUDA_HOST_GPU");
	if (given != nullptr)
		snprintf(address, (size_t)length, "%s", given);
	else
		snprintf(address, (size_t)length, "%08x:00:00.0", (unsigned)getpid());
	return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
	return cuda_host::result(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

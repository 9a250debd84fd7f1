/* Errors of the runtime API, and the device. */
#include "tests/cuda_host/capability.h"
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
	case cudaErrorDevicesUnavailable:
		return "cudaErrorDevicesUnavailable";
	case cudaErrorInvalidDeviceFunction:
		return "cudaErrorInvalidDeviceFunction";
	case cudaErrorInvalidDevice:
		return "cudaErrorInvalidDevice";
	case cudaErrorNoKernelImageForDevice:
		return "cudaErrorNoKernelImageForDevice";
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
	case cudaErrorDevicesUnavailable:
		return "CUDA-capable device(s) is/are busy or unavailable";
	case cudaErrorInvalidDeviceFunction:
		return "invalid device function";
	case cudaErrorInvalidDevice:
		return "invalid device ordinal";
	case cudaErrorNoKernelImageForDevice:
		return "no kernel image is available for execution on the device";
	case cudaErrorInvalidResourceHandle:
		return "invalid resource handle";
	case cudaErrorNotReady:
		return "device not ready";
	}
	return "unrecognized error code";
}

/* CUDA_HOST_DEVICES: how many GPUs a process sees; its memory is the same whichever it takes. */
static int device_count()
{
	const char *given = getenv("CUDA_HOST_DEVICES");
	return given != nullptr ? atoi(given) : 1;
}

/* With CUDA_HOST_DRIVER=none there is no driver, with no_library one that is loaded and lacks its library: the runtime
 * library reports both as one that is too old; with old there is one that is. */
cudaError_t cudaGetDeviceCount(int *count)
{
	const bool is_missing = getenv("CUDA_HOST_DRIVER") != nullptr;
	*count = is_missing ? 0 : device_count();
	return cuda_host::result(is_missing ? cudaErrorInsufficientDriver : cudaSuccess);
}

cudaError_t cudaDriverGetVersion(int *version)
{
	const char *driver = getenv("CUDA_HOST_DRIVER");
	*version = driver == nullptr ? CUDART_VERSION : strcmp(driver, "old") == 0 ? 9000 : 0;
	return cudaSuccess;
}

/* Ten times the major number, and the minor; 0 until it is set. */
static int capability;

void cuda_host_set_capability(int wanted)
{
	capability = wanted;
}

static int read_capability()
{
	const char *given = getenv("CUDA_HOST_CAPABILITY");
	if (capability == 0)
		capability = given != nullptr ? atoi(given) : 90;
	return capability;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device)
{
	size_t free_bytes;
	if (device < 0 || device >= device_count())
		return cuda_host::result(cudaErrorInvalidDevice);
	snprintf(properties->name, sizeof(properties->name), "cuda_host");
	properties->major = read_capability() / 10;
	properties->minor = read_capability() % 10;
	properties->multiProcessorCount = 3; /* few, so that a block of a persistent grid has several tiles */
	return cudaMemGetInfo(&free_bytes, &properties->totalGlobalMem);
}

/* Every process has a GPU of its own, unless CUDA_HOST_GPU gives its address or CUDA_HOST_DEVICES says how many the
 * processes share. */
cudaError_t cudaDeviceGetPCIBusId(char *address, int length, int device)
{
	const char *given = getenv("CUDA_HOST_GPU");
	if (given != nullptr)
		snprintf(address, (size_t)length, "%s", given);
	else if (getenv("CUDA_HOST_DEVICES") != nullptr)
		snprintf(address, (size_t)length, "00000000:%02x:00.0", (unsigned)device + 1);
	else
		snprintf(address, (size_t)length, "%08x:00:00.0", (unsigned)getpid());
	return cudaSuccess;
}

static bool is_named(const char *variable, int device)
{
	const char *given = getenv(variable);
	return given != nullptr && atoi(given) == device;
}

/* Another process holds the GPU whose number is CUDA_HOST_HELD_GPU for itself alone; no process may use
 * CUDA_HOST_PROHIBITED_GPU; CUDA_HOST_HUNG_GPU does not answer. */
cudaError_t cudaSetDevice(int device)
{
	if (device < 0 || device >= device_count())
		return cuda_host::result(cudaErrorInvalidDevice);
	while (is_named("CUDA_HOST_HUNG_GPU", device))
		pause();
	const bool is_unavailable = is_named("CUDA_HOST_HELD_GPU", device) || is_named("CUDA_HOST_PROHIBITED_GPU", device);
	return cuda_host::result(is_unavailable ? cudaErrorDevicesUnavailable : cudaSuccess);
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device)
{
	if (attribute != cudaDevAttrComputeMode || device < 0 || device >= device_count())
		return cuda_host::result(cudaErrorInvalidValue);
	*value = is_named("CUDA_HOST_PROHIBITED_GPU", device) ? cudaComputeModeProhibited
	         : is_named("CUDA_HOST_HELD_GPU", device)     ? cudaComputeModeExclusiveProcess
	                                                      : cudaComputeModeDefault;
	return cudaSuccess;
}

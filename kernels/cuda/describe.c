/* What GPUs there are, and what they and their driver say of themselves. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernels/cuda/cuda.h"

/* The kernel's driver has this file while it is loaded. */
#define DRIVER_VERSION "/proc/driver/nvidia/version"

int wlb_cuda_device_count(void)
{
	int count = 0;
	return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

/* CUDA has one error for a driver that is too old, for one that is not loaded, and for one without its library, whose
 * version is 0. */
int wlb_cuda_is_unusable(void)
{
	int count = 0, version = 0;
	return cudaGetDeviceCount(&count) == cudaErrorInsufficientDriver && access(DRIVER_VERSION, F_OK) == 0 &&
	       cudaDriverGetVersion(&version) == cudaSuccess && version > 0;
}

/* CUDA loads a kernel when it is first asked for: without this check a program that was built for other GPUs would fail
 * in the middle of the first step. Which of the two errors it is depends on the version of CUDA. */
int wlb_cuda_check_kernels(int index, struct wlb_error *error)
{
	struct cudaDeviceProp properties;
	cudaError_t status = cudaSetDevice(index);
	if (status == cudaSuccess)
		status = cudaGetDeviceProperties(&properties, index);
	if (status == cudaSuccess)
		status = wlb_cuda_find_kernel();
	cudaGetLastError(); /* so that no later call reports it */
	if (status != cudaErrorNoKernelImageForDevice && status != cudaErrorInvalidDeviceFunction)
		return 0;
	return wlb_fail(error,
	                "device cuda:%d: this program has no kernels for compute capability %d.%d; build with "
	                "-DCMAKE_CUDA_ARCHITECTURES=%d%d",
	                index, properties.major, properties.minor, properties.major, properties.minor);
}

/* Reads the driver's version from its file: "NVRM version: ...  580.159.04  Release Build ...". CUDA has no call for
 * it.
 */
static void read_driver(char *driver, size_t size)
{
	char line[512] = "";
	FILE *file = fopen(DRIVER_VERSION, "re");
	driver[0] = '\0';
	if (file == NULL)
		return;
	if (fgets(line, sizeof(line), file) == NULL)
		line[0] = '\0';
	fclose(file);
	char *rest = NULL;
	for (char *word = strtok_r(line, " \t\n", &rest); word != NULL; word = strtok_r(NULL, " \t\n", &rest))
		if (isdigit((unsigned char)word[0]) && strchr(word, '.') != NULL) {
			snprintf(driver, size, "%.*s", (int)size - 1, word);
			return;
		}
}

int wlb_cuda_describe(int index, struct wlb_gpu *gpu, struct wlb_error *error)
{
	struct cudaDeviceProp properties;
	int count = 0;
	*gpu = (struct wlb_gpu){.cuda = CUDART_VERSION};
	cudaError_t status = cudaGetDeviceCount(&count);
	if (status == cudaSuccess && count == 0)
		return wlb_fail(error, "CUDA finds no GPU; check nvidia-smi and CUDA_VISIBLE_DEVICES");
	if (status == cudaSuccess)
		status = cudaGetDeviceProperties(&properties, index);
	if (status == cudaSuccess)
		status = cudaDeviceGetPCIBusId(gpu->address, (int)sizeof(gpu->address), index);
	if (status == cudaSuccess)
		status = cudaDriverGetVersion(&gpu->driver_cuda);
	if (status != cudaSuccess)
		return wlb_fail(error, "device cuda:%d: CUDA finds no GPU: %s; check nvidia-smi", index,
		                cudaGetErrorString(status));
	snprintf(gpu->model, sizeof(gpu->model), "%.*s", (int)sizeof(gpu->model) - 1, properties.name);
	gpu->memory_bytes = (int64_t)properties.totalGlobalMem;
	read_driver(gpu->driver, sizeof(gpu->driver));
	return 0;
}

/*
 * The part of CUDA C++ that this project's kernels use, for a host compiler. A kernel is an ordinary function; the
 * threads of a block run it as fibers (block.h). nvcc includes the header of this name before a .cu file, and so does
 * the build of tests/cuda_host.
 */
#ifndef CUDA_HOST_CUDA_RUNTIME_H
#define CUDA_HOST_CUDA_RUNTIME_H

#include <cuda_runtime_api.h>

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <functional>
#include <tuple>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))
/* The section makes the compiler refuse a shared array that is not static, of which each thread would have its own. */
#define __shared__ __attribute__((section("cuda_shared")))

struct uint3 {
	unsigned x, y, z;
};

struct dim3 {
	unsigned x, y, z;
	constexpr dim3(unsigned x_count = 1, unsigned y_count = 1, unsigned z_count = 1)
	    : x(x_count), y(y_count), z(z_count)
	{
	}
};

struct __align__(8) float2
{
	float x, y;
};
struct __align__(16) float4
{
	float x, y, z, w;
};
struct __align__(8) uint2
{
	unsigned x, y;
};
struct __align__(16) uint4
{
	unsigned x, y, z, w;
};
struct __align__(16) int4
{
	int x, y, z, w;
};

static inline float2 make_float2(float x, float y)
{
	return {x, y};
}
static inline float4 make_float4(float x, float y, float z, float w)
{
	return {x, y, z, w};
}
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
	return {x, y, z, w};
}

/* Set before a thread runs on. */
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
static const int warpSize = 32;

template <typename number> static inline number min(number a, number b)
{
	return b < a ? b : a;
}
template <typename number> static inline number max(number a, number b)
{
	return a < b ? b : a;
}
static inline float rsqrtf(float x)
{
	return 1 / sqrtf(x);
}
/* The sine and cosine of pi x. */
static inline void sincospi(double x, double *sine, double *cosine)
{
	sincos(M_PI * remainder(x, 2), sine, cosine);
}
/* Macros, since glibc declares functions of these names. */
#define __expf(x) expf(x)
#define __logf(x) logf(x)
static inline float __uint_as_float(unsigned bits)
{
	float x;
	memcpy(&x, &bits, sizeof(x));
	return x;
}
static inline unsigned __float_as_uint(float x)
{
	unsigned bits;
	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

/* The fibers of a block never run at the same time. */
static inline int atomicAdd(int *address, int value)
{
	const int before = *address;
	*address += value;
	return before;
}

/* -- barriers, shuffles and votes: warp.h has the rules of masks -- */
void __syncthreads();
void __syncwarp(unsigned mask = 0xffffffffu);
unsigned __ballot_sync(unsigned mask, int predicate);

static inline int __any_sync(unsigned mask, int predicate)
{
	return __ballot_sync(mask, predicate) != 0;
}
static inline int __all_sync(unsigned mask, int predicate)
{
	return __ballot_sync(mask, !predicate) == 0;
}

struct cudaLaunchConfig_t {
	dim3 gridDim;
	dim3 blockDim;
	size_t dynamicSmemBytes;
	cudaStream_t stream;
};

namespace cuda_host
{
/* Returns `bits` of the lane `source` of the warp; a lane that is not in `mask` has none, and the test ends. */
uint64_t shuffle(unsigned mask, uint64_t bits, int source);
/* The number of the calling thread in its warp. */
int lane();

template <typename number> static inline number shuffle_from(unsigned mask, number value, int source)
{
	static_assert(sizeof(number) <= sizeof(uint64_t), "CUDA shuffles values of 4 and 8 bytes");
	uint64_t bits = 0;
	memcpy(&bits, &value, sizeof(value));
	bits = shuffle(mask, bits, source);
	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* Checks and queues a launch. `run` calls the kernel once for one thread. */
cudaError_t launch(const cudaLaunchConfig_t *config, const void *kernel, std::function<void()> run);
/* Ends the test where a pointer that the host passes to a kernel is neither device memory nor pinned. */
void check_pointer(const void *kernel, int argument, const void *pointer);

template <typename value> static inline void check_argument(const void *, int, const value &)
{
}
template <typename value> static inline void check_argument(const void *kernel, int argument, value *const &pointer)
{
	check_pointer(kernel, argument, pointer);
}
} // namespace cuda_host

template <typename number> static inline number __shfl_sync(unsigned mask, number value, int source)
{
	return cuda_host::shuffle_from(mask, value, source & 31);
}
template <typename number> static inline number __shfl_xor_sync(unsigned mask, number value, int lanes)
{
	return cuda_host::shuffle_from(mask, value, cuda_host::lane() ^ lanes);
}
template <typename number> static inline number __shfl_down_sync(unsigned mask, number value, int lanes)
{
	const int lane = cuda_host::lane(), source = lane + lanes;
	return cuda_host::shuffle_from(mask, value, source < warpSize ? source : lane);
}
template <typename number> static inline number __shfl_up_sync(unsigned mask, number value, int lanes)
{
	const int lane = cuda_host::lane(), source = lane - lanes;
	return cuda_host::shuffle_from(mask, value, source >= 0 ? source : lane);
}

/* Queues kernel(values...): the values are converted now, as CUDA does, and each thread receives a copy. */
template <typename... parameters, typename... arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(parameters...), arguments &&...values)
{
	const std::tuple<parameters...> copies(std::forward<arguments>(values)...);
	const void *const address = (const void *)kernel;
	std::apply(
		[address](const parameters &...copy) {
			int argument = 0;
			(cuda_host::check_argument(address, argument++, copy), ...);
		},
		copies);
	return cuda_host::launch(config, address, [kernel, copies] { std::apply(kernel, copies); });
}

template <typename... parameters>
cudaError_t cudaFuncSetAttribute(void (*kernel)(parameters...), cudaFuncAttribute attribute, int value)
{
	return cudaFuncSetAttribute((const void *)kernel, attribute, value);
}

#endif

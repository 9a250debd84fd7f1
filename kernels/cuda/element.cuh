/*
 * The element types of kernels, and packs: 16 bytes of an array, loaded or stored by one instruction.
 *
 * A kernel is a template over the element type and the number of elements of a pack: those of 16 bytes, or 1 where an
 * address or the length of a row is not a multiple of 16 bytes. All arithmetic is in float32; a result is rounded once,
 * when it is stored.
 */
#ifndef WLB_CUDA_ELEMENT_CUH
#define WLB_CUDA_ELEMENT_CUH

#include <initializer_list>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"

struct wlb_bf16 {
	uint16_t bits;
};

/* Elements of a pack of 16 bytes. */
template <typename element> static constexpr int WLB_PACK = 16 / (int)sizeof(element);

/* A pack as it is in memory: `raw` is loaded by one instruction. */
template <typename element, int count> struct wlb_pack;
template <> struct wlb_pack<float, 1> {
	typedef float type;
	float raw;
};
template <> struct wlb_pack<float, 4> {
	typedef float4 type;
	float4 raw;
};
template <> struct wlb_pack<wlb_bf16, 1> {
	typedef uint16_t type;
	uint16_t raw;
};
template <> struct wlb_pack<wlb_bf16, 8> {
	typedef uint4 type;
	uint4 raw;
};

/* Loads pack number i of an array. */
template <int count, typename element>
__device__ static inline wlb_pack<element, count> wlb_load(const element *from, int64_t i)
{
	return {*(const typename wlb_pack<element, count>::type *)(from + i * count)};
}

/* Stores pack number i of an array. */
template <int count, typename element>
__device__ static inline void wlb_store(element *to, int64_t i, const wlb_pack<element, count> &pack)
{
	*(typename wlb_pack<element, count>::type *)(to + i * count) = pack.raw;
}

/* -- the values of a pack -- */

__device__ static inline void wlb_values(float (&values)[1], const wlb_pack<float, 1> &pack)
{
	values[0] = pack.raw;
}

__device__ static inline void wlb_values(float (&values)[4], const wlb_pack<float, 4> &pack)
{
	values[0] = pack.raw.x;
	values[1] = pack.raw.y;
	values[2] = pack.raw.z;
	values[3] = pack.raw.w;
}

__device__ static inline void wlb_values(float (&values)[1], const wlb_pack<wlb_bf16, 1> &pack)
{
	values[0] = __uint_as_float((unsigned)pack.raw << 16);
}

__device__ static inline void wlb_values(float (&values)[8], const wlb_pack<wlb_bf16, 8> &pack)
{
	const unsigned words[4] = {pack.raw.x, pack.raw.y, pack.raw.z, pack.raw.w};
#pragma unroll
	for (int i = 0; i < 4; i++) {
		values[2 * i] = __uint_as_float(words[i] << 16);
		values[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
	}
}

/* -- the pack of values, each rounded to the nearest, ties to even -- */

__device__ static inline void wlb_round(wlb_pack<float, 1> &pack, const float (&values)[1])
{
	pack.raw = values[0];
}

__device__ static inline void wlb_round(wlb_pack<float, 4> &pack, const float (&values)[4])
{
	pack.raw = make_float4(values[0], values[1], values[2], values[3]);
}

__device__ static inline void wlb_round(wlb_pack<wlb_bf16, 1> &pack, const float (&values)[1])
{
	pack.raw = (uint16_t)wlb_pack_bf16(values[0], 0);
}

__device__ static inline void wlb_round(wlb_pack<wlb_bf16, 8> &pack, const float (&values)[8])
{
	pack.raw = make_uint4(wlb_pack_bf16(values[0], values[1]), wlb_pack_bf16(values[2], values[3]),
	                      wlb_pack_bf16(values[4], values[5]), wlb_pack_bf16(values[6], values[7]));
}

/* -- both in one -- */

template <int count, typename element>
__device__ static inline void wlb_load_values(float (&values)[count], const element *from, int64_t i)
{
	wlb_values(values, wlb_load<count>(from, i));
}

template <int count, typename element>
__device__ static inline void wlb_store_values(element *to, int64_t i, const float (&values)[count])
{
	wlb_pack<element, count> pack;
	wlb_round(pack, values);
	wlb_store<count>(to, i, pack);
}

/* -- as many float32 as a pack of another type has: pack number i, of which one access has four -- */

template <int count> __device__ static inline void wlb_load_floats(float (&values)[count], const float *from, int64_t i)
{
	constexpr int of_access = count < 4 ? 1 : 4, accesses = count / of_access;
#pragma unroll
	for (int access = 0; access < accesses; access++) {
		float part[of_access];
		wlb_load_values<of_access>(part, from, i * accesses + access);
#pragma unroll
		for (int j = 0; j < of_access; j++)
			values[access * of_access + j] = part[j];
	}
}

template <int count> __device__ static inline void wlb_store_floats(float *to, int64_t i, const float (&values)[count])
{
	constexpr int of_access = count < 4 ? 1 : 4, accesses = count / of_access;
#pragma unroll
	for (int access = 0; access < accesses; access++) {
		float part[of_access];
#pragma unroll
		for (int j = 0; j < of_access; j++)
			part[j] = values[access * of_access + j];
		wlb_store_values<of_access>(to, i * accesses + access, part);
	}
}

/* -- adds to pack number i of weights' gradients, which are of one of the two types -- */

template <int count> __device__ static inline void wlb_add_gradients(float *to, int64_t i, const float (&values)[count])
{
	float sum[count];
	wlb_load_floats<count>(sum, to, i);
#pragma unroll
	for (int j = 0; j < count; j++)
		sum[j] += values[j];
	wlb_store_floats<count>(to, i, sum);
}

template <int count>
__device__ static inline void wlb_add_gradients(wlb_bf16 *to, int64_t i, const float (&values)[count])
{
	float sum[count];
	wlb_load_values<count>(sum, to, i);
#pragma unroll
	for (int j = 0; j < count; j++)
		sum[j] += values[j];
	wlb_store_values<count>(to, i, sum);
}

/* -- launches -- */

/* What a kernel is instantiated for. */
template <typename element_type, int count_of_pack> struct wlb_kind {
	typedef element_type element;
	static constexpr int count = count_of_pack;
};

template <typename element, typename function>
static inline void wlb_choose_pack(uint64_t elements, uint64_t addresses, const function &call)
{
	if (((elements * sizeof(element) | addresses) & 15) == 0)
		call(wlb_kind<element, WLB_PACK<element>>());
	else
		call(wlb_kind<element, 1>());
}

/* Calls call(wlb_kind) for the element type, with packs of 16 bytes where all strides and lengths of rows, which are in
 * elements, and all addresses are multiples of 16 bytes. */
template <typename function>
static inline void wlb_choose_kind(enum wlb_dtype dtype, std::initializer_list<int64_t> lengths,
                                   std::initializer_list<const void *> addresses, const function &call)
{
	uint64_t elements = 0, bytes = 0;
	for (const int64_t length : lengths)
		elements |= (uint64_t)length;
	for (const void *address : addresses)
		bytes |= (uint64_t)(uintptr_t)address;
	if (dtype == WLB_BFLOAT16)
		wlb_choose_pack<wlb_bf16>(elements, bytes, call);
	else
		wlb_choose_pack<float>(elements, bytes, call);
}

/* Calls call(wlb_kind, gradient), where `gradient` is a value of the element type of weights' gradients: float, or that
 * of the kind. */
template <typename function>
static inline void wlb_choose_kinds(const struct wlb_device *device, std::initializer_list<int64_t> lengths,
                                    std::initializer_list<const void *> addresses, const function &call)
{
	const bool is_smaller = device->gradients == WLB_BFLOAT16;
	wlb_choose_kind(device->compute, lengths, addresses, [&](auto kind) {
		if (is_smaller)
			call(kind, typename decltype(kind)::element());
		else
			call(kind, float());
	});
}

/* Returns the threads of a block that computes a row of `packs` with `packs_of_thread` for each thread: whole warps,
 * `most` at most. */
static inline unsigned wlb_row_threads(int64_t packs, int packs_of_thread, unsigned most)
{
	const int64_t warps = (packs + 32 * packs_of_thread - 1) / (32 * packs_of_thread);
	return warps < 1 ? 32 : warps * 32 < most ? (unsigned)warps * 32 : most;
}

/* Returns a grid for independent rows of `packs`: the threads of x share a row, those of y are of different rows. */
static inline struct wlb_cuda_grid wlb_rows_grid(int64_t rows, int64_t packs)
{
	unsigned x = 1;
	while (x < WLB_BLOCK && x < packs)
		x *= 2;
	const unsigned y = WLB_BLOCK / x;
	return {(unsigned)((rows + y - 1) / y), dim3(x, y)};
}

/* In a kernel with that grid: the row of the thread, which may be past the last. */
__device__ static inline int64_t wlb_row_of_thread()
{
	return (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
}

#endif

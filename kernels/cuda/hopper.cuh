/*
 * The instructions of compute capability 9.0 for which CUDA C++ has no name (PTX ISA, sm_90a): barriers in shared
 * memory that count bytes (mbarrier), copies of boxes of a matrix by the tensor memory accelerator (TMA), products of
 * matrices by a warpgroup (wgmma), registers that warpgroups pass on, and named barriers. Kernels use them through
 * these functions alone, so that tests/cuda_host can put functions with the same meaning in their place.
 *
 * Boxes in shared memory: rows of 128 bytes, the 16-byte pieces of row r exchanged by piece ^= r % 8 (swizzle of 128
 * bytes), so that a box begins at a multiple of 1024 bytes.
 *
 * A warpgroup is four warps, the first of which has a number that 4 divides. Its products have 64 rows: warp w of it
 * holds rows 16 w .. 16 w + 15 as fragments as in ptx.cuh.
 */
#ifndef WLB_CUDA_HOPPER_CUH
#define WLB_CUDA_HOPPER_CUH

#include <stdint.h>

#include "kernels/cuda/tensor_map.h"

enum { WLB_WARPGROUP = 128, WLB_BOX_ROWS = 64, WLB_BOX_COLUMNS = 64, WLB_BOX_BYTES = 64 * 64 * 2 };

/* -- barriers that count arrivals and bytes -- */

/* A phase of it ends when `arrivals` threads have arrived and all expected bytes have come; the next begins then. */
typedef uint64_t wlb_mbarrier;

__device__ static inline uint32_t wlb_shared_address(const void *shared)
{
	return (uint32_t)__cvta_generic_to_shared(shared);
}

/* One thread calls it, then wlb_mbarrier_init_fence() once for all barriers; other threads use them after a barrier of
 * the block. */
__device__ static inline void wlb_mbarrier_init(wlb_mbarrier *barrier, unsigned arrivals)
{
	asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(wlb_shared_address(barrier)), "r"(arrivals)
	             : "memory");
}

__device__ static inline void wlb_mbarrier_init_fence()
{
	asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* What the thread wrote to shared memory before is seen by threads that have waited for the phase. */
__device__ static inline void wlb_mbarrier_arrive(wlb_mbarrier *barrier)
{
	asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(wlb_shared_address(barrier))
	             : "memory");
}

/* Arrives, and makes the phase wait for so many bytes more. */
__device__ static inline void wlb_mbarrier_arrive_expect_tx(wlb_mbarrier *barrier, unsigned bytes)
{
	asm volatile(
		"mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(wlb_shared_address(barrier)),
		"r"(bytes)
		: "memory");
}

/* Waits until the phase of that parity has ended: 0 for the first, third, ... phase. Returns at once if the phase that
 * runs has the other parity. */
__device__ static inline void wlb_mbarrier_wait(wlb_mbarrier *barrier, unsigned parity)
{
	asm volatile("{\n"
	             ".reg .pred ended;\n"
	             "again:\n"
	             "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 ended, [%0], %1;\n"
	             "@!ended bra again;\n"
	             "}" ::"r"(wlb_shared_address(barrier)),
	             "r"(parity)
	             : "memory");
}

/* Barrier `id` (1 to 15) of the block, of `threads` threads. Threads that sync wait for all others; threads that arrive
 * do not wait. */
template <int threads> __device__ static inline void wlb_named_barrier_sync(int id)
{
	asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(threads) : "memory");
}

template <int threads> __device__ static inline void wlb_named_barrier_arrive(int id)
{
	asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(threads) : "memory");
}

/* -- boxes -- */

/* Starts the copy of the box whose first element is at (row, column) of the map's matrix, by one thread; its
 * WLB_BOX_BYTES count for the barrier. Elements beyond the matrix become 0. `map` is in the kernel's parameters. */
__device__ static inline void wlb_tma_load_2d(void *to, const struct wlb_tensor_map *map, int column, int row,
                                              wlb_mbarrier *barrier)
{
	asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
	             "%3}], "
	             "[%4];" ::"r"(wlb_shared_address(to)),
	             "l"((uint64_t)map), "r"(column), "r"(row), "r"(wlb_shared_address(barrier))
	             : "memory");
}

/* Makes what the thread wrote to shared memory visible to products that begin later. */
__device__ static inline void wlb_fence_proxy_async()
{
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* -- products -- */

/* The warpgroup gives up registers, or takes them: `count` of each thread from now on. */
template <int count> __device__ static inline void wlb_setmaxnreg_dec()
{
	asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}

template <int count> __device__ static inline void wlb_setmaxnreg_inc()
{
	asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

/* Describes a matrix of boxes to a product, in which contiguous elements are along the product's inner dimension
 * (`next_columns_bytes` is not used then), or along its columns. Groups of 8 rows are 1024 bytes apart;
 * `next_columns_bytes` from the first 64 columns to the next. Adding wlb_wgmma_descriptor_step(bytes) moves the
 * beginning. */
__device__ static inline uint64_t wlb_wgmma_descriptor(const void *boxes, unsigned next_columns_bytes)
{
	const uint64_t swizzle_128_bytes = (uint64_t)1 << 62;
	return swizzle_128_bytes | (uint64_t)(1024 >> 4) << 32 | (uint64_t)(next_columns_bytes >> 4) << 16 |
	       (wlb_shared_address(boxes) & 0x3ffff) >> 4;
}

__device__ static constexpr uint64_t wlb_wgmma_descriptor_step(unsigned bytes)
{
	return bytes >> 4;
}

/* Before the first product, and where registers of a product were written since. */
__device__ static inline void wlb_wgmma_fence()
{
	asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/* Ends a group of products. */
__device__ static inline void wlb_wgmma_commit()
{
	asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Waits until at most the `newest` newest groups are under way. */
template <int newest> __device__ static inline void wlb_wgmma_wait()
{
	asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(newest) : "memory");
}

/* Registers are computed before what follows, and not yet where the compiler sees their use: what a warpgroup computes
 * before it waits for products is computed beside them. */
template <int columns> __device__ static inline void wlb_fence_values(float (&values)[columns][4])
{
#pragma unroll
	for (int i = 0; i < columns * 4; i++)
		asm volatile("" : "+f"(values[i / 4][i % 4])::"memory");
}

/* After a wait: the left operands of the products that were waited for had to stay in their registers until now, which
 * the compiler does not know. */
template <int depth> __device__ static inline void wlb_wgmma_fence_operands(uint32_t (&a)[depth][4])
{
#pragma unroll
	for (int i = 0; i < depth * 4; i++)
		asm volatile("" : "+r"(a[i / 4][i % 4])::"memory");
}

/* The registers of d, as operands: 8 columns; 64 columns; 128. */
#define WLB_D8(n) "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3])
#define WLB_D64(n)                                                                                                     \
	WLB_D8(n), WLB_D8(n + 1), WLB_D8(n + 2), WLB_D8(n + 3), WLB_D8(n + 4), WLB_D8(n + 5), WLB_D8(n + 6),           \
		WLB_D8(n + 7)
#define WLB_D64_NAMES                                                                                                  \
	"{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, "   \
	"%23, "                                                                                                        \
	"%24, %25, %26, %27, %28, %29, %30, %31}"
#define WLB_D128_NAMES                                                                                                 \
	"{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, "   \
	"%23, "                                                                                                        \
	"%24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, "    \
	"%45, "                                                                                                        \
	"%46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"

/* d = a b^T, or d += a b^T where `add` is not 0: a of 64 x 16 and b of `columns` x 16 bfloat16 in shared memory, both
 * with their 16 columns contiguous. d is undefined until its group has been waited for. */
__device__ static inline void wlb_wgmma(float (&d)[8][4], uint64_t a, uint64_t b, int add)
{
	asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %34, 0;\n"
	             "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " WLB_D64_NAMES
	             ", %32, %33, add, 1, 1, 0, 0;\n}"
	             : WLB_D64(0)
	             : "l"(a), "l"(b), "r"(add));
}

__device__ static inline void wlb_wgmma(float (&d)[16][4], uint64_t a, uint64_t b, int add)
{
	asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %66, 0;\n"
	             "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 " WLB_D128_NAMES
	             ", %64, %65, add, 1, 1, 0, 0;\n}"
	             : WLB_D64(0), WLB_D64(8)
	             : "l"(a), "l"(b), "r"(add));
}

/* The same with a in registers: the fragments of each warp's 16 rows, in the order of wlb_mma_bf16. They must not
 * change until the product's group has been waited for. b_by_rows 1: b has its 16 columns contiguous, as above; 0: it
 * is transposed, 16 rows in which the `columns` are contiguous, and d = a b. */
template <int b_by_rows>
__device__ static inline void wlb_wgmma(float (&d)[8][4], const uint32_t (&a)[4], uint64_t b, int add)
{
	asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %37, 0;\n"
	             "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " WLB_D64_NAMES
	             ", {%32, %33, %34, %35}, %36, add, 1, 1, %38;\n}"
	             : WLB_D64(0)
	             : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"(1 - b_by_rows));
}

template <int b_by_rows>
__device__ static inline void wlb_wgmma(float (&d)[16][4], const uint32_t (&a)[4], uint64_t b, int add)
{
	asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %69, 0;\n"
	             "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 " WLB_D128_NAMES
	             ", {%64, %65, %66, %67}, %68, add, 1, 1, %70;\n}"
	             : WLB_D64(0), WLB_D64(8)
	             : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"(1 - b_by_rows));
}

#endif

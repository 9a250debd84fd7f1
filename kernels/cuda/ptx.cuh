/*
 * The instructions of the PTX ISA for which CUDA C++ has no name: asynchronous copies to shared memory, products of
 * small matrices by a warp, the rounding of two values at once, and 2^x (compute capability 8.0 and up). Kernels use
 * them through these functions alone, so that tests/cuda_host can put functions with the same meaning in their place.
 *
 * Fragments: a matrix of 8 x 8 bfloat16 is held by a warp in one register of two values a lane: lane 4 r + c has the
 * columns 2 c (low half) and 2 c + 1 of row r.
 */
#ifndef WLB_CUDA_PTX_CUH
#define WLB_CUDA_PTX_CUH

#include <stdint.h>

/* Starts a copy of 16 bytes from device to shared memory, both 16-byte aligned; where `valid` is false, `from` is not
 * read and the 16 bytes become 0. `to` is undefined until the calling thread has waited for the copy's group. */
__device__ static inline void wlb_cp_async(void *to, const void *from, bool valid)
{
	const uint32_t shared = (uint32_t)__cvta_generic_to_shared(to);
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from), "r"(valid ? 16 : 0)
	             : "memory");
}

/* Ends a group: the calling thread's copies since the group before it, which may be none. */
__device__ static inline void wlb_cp_async_commit()
{
	asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until at most the `newest` newest groups of the calling thread are under way. Other threads see what has
 * arrived after a barrier. */
template <int newest> __device__ static inline void wlb_cp_async_wait()
{
	asm volatile("cp.async.wait_group %0;" ::"n"(newest) : "memory");
}

/* Loads four matrices of 8 x 8 from shared memory; all lanes call it. Lane 8 i + r gives the address of row r of matrix
 * i: 8 values, 16-byte aligned. m[i] is the fragment of matrix i. */
__device__ static inline void wlb_ldmatrix_x4(uint32_t (&m)[4], const void *row)
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
	             : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
	             : "r"((uint32_t)__cvta_generic_to_shared(row))
	             : "memory");
}

/* The same, but m[i] is the fragment of the transpose of matrix i. */
__device__ static inline void wlb_ldmatrix_x4_trans(uint32_t (&m)[4], const void *row)
{
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
	             : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
	             : "r"((uint32_t)__cvta_generic_to_shared(row))
	             : "memory");
}

/* Returns two values rounded to bfloat16 (to nearest, ties to even): the low half is `low`. */
__device__ static inline uint32_t wlb_pack_bf16(float low, float high)
{
	uint32_t both;
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
	return both;
}

/* 2^x, within 2 units in the last place of float32; 0 for -infinity. */
__device__ static inline float wlb_exp2(float x)
{
	float y;
	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}

/* d += a b^T for a of 16 x 16 and b of 8 x 16 bfloat16, summed in float32; all lanes call it. a: the fragments of rows
 * 0-7 and 8-15 of columns 0-7, then those of columns 8-15. b: columns 0-7, then 8-15. d of 16 x 8: lane 4 r + c has
 * the columns 2 c and 2 c + 1 of row r, then of row r + 8. */
__device__ static inline void wlb_mma_bf16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
	             "{%8, %9}, {%0, %1, %2, %3};"
	             : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
	             : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

#endif

/*
 * The functions of the product's header of this name, which says what they do, for the host: found before it, since
 * this folder comes first in the include path. ptx.cc has them.
 */
#ifndef WLB_CUDA_PTX_CUH
#define WLB_CUDA_PTX_CUH

#include <math.h>
#include <stdint.h>

namespace cuda_host
{
void cp_async_wait(int newest);
}

void wlb_cp_async(void *to, const void *from, bool valid);
void wlb_cp_async_commit();
template <int newest> static inline void wlb_cp_async_wait()
{
	cuda_host::cp_async_wait(newest);
}
void wlb_ldmatrix_x4(uint32_t (&m)[4], const void *row);
void wlb_ldmatrix_x4_trans(uint32_t (&m)[4], const void *row);
uint32_t wlb_pack_bf16(float low, float high);
static inline float wlb_exp2(float x)
{
	return exp2f(x);
}
void wlb_mma_bf16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1);

#endif

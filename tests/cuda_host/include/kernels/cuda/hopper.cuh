/*
 * The functions of the product's header of this name, which says what they do, for the host: found before it, since
 * this folder comes first in the include path. hopper.cc and hopper_products.cc have them.
 */
#ifndef WLB_CUDA_HOPPER_CUH
#define WLB_CUDA_HOPPER_CUH

#include <stdint.h>

#include "kernels/cuda/tensor_map.h"

enum { WLB_WARPGROUP = 128, WLB_BOX_ROWS = 64, WLB_BOX_COLUMNS = 64, WLB_BOX_BYTES = 64 * 64 * 2 };

namespace cuda_host
{
void named_barrier(int id, int threads, bool waits);

/* A product of the calling thread's warpgroup, as this thread has given it. */
struct product {
	float *d;
	int columns;
	const uint32_t *a_registers; /* NULL: a is in shared memory */
	uint64_t a, b;
	bool b_by_rows, add;
};
void products_add(const product &product);
void products_wait(int newest);
} // namespace cuda_host

/* -- barriers that count arrivals and bytes -- */

typedef uint64_t wlb_mbarrier;

uint32_t wlb_shared_address(const void *shared);
void wlb_mbarrier_init(wlb_mbarrier *barrier, unsigned arrivals);
static inline void wlb_mbarrier_init_fence()
{
}
void wlb_mbarrier_arrive(wlb_mbarrier *barrier);
void wlb_mbarrier_arrive_expect_tx(wlb_mbarrier *barrier, unsigned bytes);
void wlb_mbarrier_wait(wlb_mbarrier *barrier, unsigned parity);

template <int threads> static inline void wlb_named_barrier_sync(int id)
{
	static_assert(threads > 0 && threads % 32 == 0, "a named barrier counts whole warps");
	cuda_host::named_barrier(id, threads, true);
}
template <int threads> static inline void wlb_named_barrier_arrive(int id)
{
	static_assert(threads > 0 && threads % 32 == 0, "a named barrier counts whole warps");
	cuda_host::named_barrier(id, threads, false);
}

/* -- boxes -- */

void wlb_tma_load_2d(void *to, const struct wlb_tensor_map *map, int column, int row, wlb_mbarrier *barrier);
static inline void wlb_fence_proxy_async()
{
}

/* -- products -- */

template <int count> static inline void wlb_setmaxnreg_dec()
{
	static_assert(count >= 24 && count <= 256 && count % 8 == 0, "setmaxnreg takes 24, 32, ... 256");
}
template <int count> static inline void wlb_setmaxnreg_inc()
{
	static_assert(count >= 24 && count <= 256 && count % 8 == 0, "setmaxnreg takes 24, 32, ... 256");
}

static inline uint64_t wlb_wgmma_descriptor(const void *boxes, unsigned next_columns_bytes)
{
	const uint64_t swizzle_128_bytes = (uint64_t)1 << 62;
	return swizzle_128_bytes | (uint64_t)(1024 >> 4) << 32 | (uint64_t)(next_columns_bytes >> 4) << 16 |
	       (wlb_shared_address(boxes) & 0x3ffff) >> 4;
}
static constexpr uint64_t wlb_wgmma_descriptor_step(unsigned bytes)
{
	return bytes >> 4;
}

static inline void wlb_wgmma_fence()
{
}
void wlb_wgmma_commit();
template <int newest> static inline void wlb_wgmma_wait()
{
	cuda_host::products_wait(newest);
}

template <int tiles> static inline void wlb_wgmma(float (&d)[tiles][4], uint64_t a, uint64_t b, int add)
{
	static_assert(tiles == 8 || tiles == 16, "a product has 64 or 128 columns");
	cuda_host::products_add({&d[0][0], 8 * tiles, nullptr, a, b, true, add != 0});
}
template <int b_by_rows, int tiles>
static inline void wlb_wgmma(float (&d)[tiles][4], const uint32_t (&a)[4], uint64_t b, int add)
{
	static_assert(tiles == 8 || tiles == 16, "a product has 64 or 128 columns");
	cuda_host::products_add({&d[0][0], 8 * tiles, a, 0, b, b_by_rows != 0, add != 0});
}

/* For compilers of a GPU. */
template <int columns> static inline void wlb_fence_values(float (&)[columns][4])
{
}

template <int depth> static inline void wlb_wgmma_fence_operands(uint32_t (&)[depth][4])
{
}

#endif

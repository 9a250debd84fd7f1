/*
 * Maps of matrices for the tensor memory accelerator of compute capability 9.0 and up, which copies boxes of 64 rows and
 * 64 columns of bfloat16 (kernels/cuda/hopper.cuh).
 */
#ifndef KERNELS_CUDA_TENSOR_MAP_H
#define KERNELS_CUDA_TENSOR_MAP_H

#include <stdint.h>

#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* CUDA's CUtensorMap: what its 128 bytes mean is the driver's own matter. */
struct wlb_tensor_map {
	uint64_t words[16];
} __attribute__((aligned(64)));

/* Describes bfloat16 in device memory: `rows` rows, `stride` elements apart, of `columns` elements. `matrix` and the
 * stride in bytes are multiples of 16; columns is a multiple of 64. Returns -1 with the driver's reason. */
int wlb_cuda_map_matrix(struct wlb_tensor_map *map, const void *matrix, int64_t rows, int64_t columns, int64_t stride,
                        struct wlb_error *error);

#ifdef __cplusplus
}
#endif

#endif

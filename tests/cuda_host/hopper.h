/*
 * What the files that emulate the instructions of kernels/cuda/hopper.cuh share, and what block.cc asks of them.
 */
#ifndef CUDA_HOST_HOPPER_H
#define CUDA_HOST_HOPPER_H

#include "kernels/cuda/tensor_map.h"

#include <stddef.h>
#include <stdint.h>

/* The dynamic shared memory of the block that runs. */
extern unsigned char wlb_dynamic_shared[];

namespace cuda_host
{
/* Dynamic shared memory for which a kernel may ask. */
const size_t MOST_SHARED_BYTES = 227 * 1024;

/* What a map describes. */
struct mapped_matrix {
	const uint16_t *elements;
	int64_t rows, columns, stride;
};

/* Ends the test if the map is none that wlb_cuda_map_matrix has made. */
mapped_matrix matrix_of_map(const wlb_tensor_map &map);

/* The place of a byte in a matrix whose rows of 128 bytes have their 16-byte pieces exchanged: as the hardware does it,
 * by bits of the address. */
static inline size_t swizzle(size_t address)
{
	return address ^ (address >> 7 & 7) << 4;
}

/* All threads of the block have left: ends the test if copies are under way, and forgets its barriers and products. */
void hopper_end_block();
void products_end_block();
} // namespace cuda_host

#endif

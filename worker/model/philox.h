/*
 * Counter-based random numbers: Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as
 * easy as 1, 2, 3" (SC 2011). Element i of a stream is computed without the elements before it, so that any rank can
 * compute any slice of a tensor.
 */
#ifndef WORKER_MODEL_PHILOX_H
#define WORKER_MODEL_PHILOX_H

#include <stdint.h>

/* The block of four 32-bit numbers for one counter under one key. */
void wlb_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* Number `index` of the standard normal stream named by (seed, stream), by Box-Muller. */
double wlb_philox_normal(uint64_t seed, uint64_t stream, uint64_t index);

/* out[0] to out[count - 1] = numbers `first` and following of the stream; each block of the generator is computed once
 * for the two numbers that it gives. */
void wlb_philox_normals(uint64_t seed, uint64_t stream, uint64_t first, int64_t count, double *out);

#endif

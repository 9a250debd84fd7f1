/*
 * What tests ask of the products of cublas.cc.
 */
#ifndef CUDA_HOST_CUBLAS_H
#define CUDA_HOST_CUBLAS_H

#include <stdint.h>

namespace cuda_host
{
/* How often cublasLtMatmulAlgoGetHeuristic was called. */
uint64_t cublas_choices();

/* Whether the calling thread is inside cublasLtMatmul. */
bool cublas_runs();
} // namespace cuda_host

#endif

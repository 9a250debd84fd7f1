/*
 * The functions of cuBLASLt that this device uses. The library has half a gigabyte, so it is loaded when a CUDA device
 * opens and not linked: a build with CUDA then also starts where the library is not installed, for the CPU device.
 */
#ifndef KERNELS_CUDA_CUBLAS_H
#define KERNELS_CUDA_CUBLAS_H

#include <cublasLt.h>

#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* do_for(name) for each function. The header calls those that end in _internal from inline functions, which initialise
 * a descriptor in memory of the caller. */
#define WLB_CUBLAS_FUNCTIONS(do_for)                                                                                   \
	do_for(cublasLtCreate);                                                                                        \
	do_for(cublasLtDestroy);                                                                                       \
	do_for(cublasLtGetStatusName);                                                                                 \
	do_for(cublasLtMatrixLayoutInit_internal);                                                                     \
	do_for(cublasLtMatmulDescInit_internal);                                                                       \
	do_for(cublasLtMatmulDescSetAttribute);                                                                        \
	do_for(cublasLtMatmulPreferenceInit_internal);                                                                 \
	do_for(cublasLtMatmulPreferenceSetAttribute);                                                                  \
	do_for(cublasLtMatmulAlgoGetHeuristic);                                                                        \
	do_for(cublasLtMatmul)

struct wlb_cublas {
#define WLB_CUBLAS_MEMBER(name) __typeof__(name) *name
	WLB_CUBLAS_FUNCTIONS(WLB_CUBLAS_MEMBER);
#undef WLB_CUBLAS_MEMBER
};

/* Loads the library of the release that this was compiled with; it stays loaded. Returns 0, or -1 with the reason. */
int wlb_cublas_load(struct wlb_cublas *cublas, struct wlb_error *error);

#ifdef __cplusplus
}
#endif

#endif

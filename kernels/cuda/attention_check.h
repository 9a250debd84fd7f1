/* Declares the checks of attention's arguments. */
#ifndef KERNELS_CUDA_ATTENTION_CHECK_H
#define KERNELS_CUDA_ATTENTION_CHECK_H

#include "kernels/cuda/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks what both passes need; returns -1 with the reason. */
int wlb_cuda_attention_check(const struct wlb_cuda_attention *attention, struct wlb_error *error);

/* Checks what the backward pass needs beside it; returns -1 with the reason. */
int wlb_cuda_attention_check_backward(const struct wlb_cuda_attention *attention, struct wlb_error *error);

#ifdef __cplusplus
}
#endif

#endif

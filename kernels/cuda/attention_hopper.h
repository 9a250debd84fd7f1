/* Attention of attention.h by the instructions of compute capability 9.0: bfloat16, heads of 64 and 128. */
#ifndef KERNELS_CUDA_ATTENTION_HOPPER_H
#define KERNELS_CUDA_ATTENTION_HOPPER_H

#include "kernels/cuda/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns whether this device and this shape have the passes below. */
int wlb_cuda_attention_is_hopper(const struct wlb_device *device, const struct wlb_cuda_attention *attention);

/* As those of attention.h, whose arguments were checked; there is at least one tile of queries or of keys. */
int wlb_cuda_attention_hopper_forward(struct wlb_device *device, const struct wlb_cuda_attention *attention,
                                      struct wlb_error *error);
int wlb_cuda_attention_hopper_backward(struct wlb_device *device, const struct wlb_cuda_attention *attention,
                                       struct wlb_error *error);

#ifdef __cplusplus
}
#endif

#endif

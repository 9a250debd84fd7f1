/*
 * Declares the operations of the CPU device for one element type and instruction set; kernels/ops.h describes each.
 */
#ifndef KERNELS_CPU_OPERATIONS_H
#define KERNELS_CPU_OPERATIONS_H

#include "kernels/cpu/real.h"

void VARIANT(linear)(struct wlb_device *, void *y, int64_t y_stride, const void *x, int64_t x_stride,
                     const struct wlb_weight *, const void *residual, int64_t n);
void VARIANT(linear_d_x)(struct wlb_device *, void *d_x, int64_t d_x_stride, const void *d_y, int64_t d_y_stride,
                         const struct wlb_weight *, int add, int64_t n);
void VARIANT(linear_d_w)(struct wlb_device *, void *d_w, const void *d_y, int64_t d_y_stride, const void *x,
                         int64_t x_stride, int add, int64_t n, int64_t out, int64_t in);
void VARIANT(embedding_forward)(struct wlb_device *, void *out, const void *table, const int32_t *ids, int64_t tokens,
                                int64_t width, int64_t first, int64_t count);
void VARIANT(embedding_backward)(struct wlb_device *, void *d_table, const void *d_out, const int32_t *ids,
                                 int64_t tokens, int64_t width, int64_t first, int64_t count);
void VARIANT(rmsnorm_forward)(struct wlb_device *, void *out, void *rstd, void *sum, const void *x,
                              const void *residual, const void *weight, int64_t tokens, int64_t width, double epsilon);
void VARIANT(rmsnorm_backward)(struct wlb_device *, void *d_x, void *d_weight, const void *d_out, const void *x,
                               const void *weight, const void *rstd, int64_t tokens, int64_t width);
void VARIANT(rope_angles)(struct wlb_device *, void *angles, const int32_t *positions, int64_t tokens, int head_dim,
                          double theta);
void VARIANT(rope)(struct wlb_device *, void *x, int64_t stride, const void *angles, int64_t tokens, int heads,
                   int head_dim, int direction);
void VARIANT(attention_forward)(struct wlb_device *, void *out, void *lse, const void *q, const void *k, const void *v,
                                const struct wlb_segments *, const struct wlb_attention_shape *);
void VARIANT(attention_backward)(struct wlb_device *, void *d_q, void *d_k, void *d_v, const void *d_out, const void *q,
                                 const void *k, const void *v, const void *out, const void *lse,
                                 const struct wlb_segments *, const struct wlb_attention_shape *);
void VARIANT(swiglu_forward)(struct wlb_device *, void *out, const void *gate_up, int64_t n, int64_t width);
void VARIANT(swiglu_backward)(struct wlb_device *, void *gate_up, void *d_out, int64_t n, int64_t width);
void VARIANT(cross_entropy_statistics)(struct wlb_device *, void *statistics, const void *logits,
                                       const int32_t *targets, int64_t tokens, int64_t first, int64_t count);
void VARIANT(cross_entropy_gradient)(struct wlb_device *, double *loss_sum, void *logits, const void *statistics,
                                     int parts, const int32_t *targets, int64_t tokens, int64_t first, int64_t count,
                                     double scale);
void VARIANT(gather_rows)(struct wlb_device *, void *out, int64_t out_stride, const void *x, int64_t x_stride,
                          const int32_t *rows, int64_t count, int64_t width);
void VARIANT(add)(struct wlb_device *, void *y, const void *x, int64_t n);
void VARIANT(sum_squares)(struct wlb_device *, double *sum, const void *x, int64_t n);
void VARIANT(clip_factor)(struct wlb_device *, double *factor, const double *sum_squares, const double *loss_sum,
                          double clip);
void VARIANT(adamw)(struct wlb_device *, void *param, void *master, const void *grad, void *m, void *v, int64_t n,
                    const struct wlb_adamw *, const double *factor);

#endif

/*
 * The element type of this compilation, functions on it that the compiler can vectorise in loops, and the operations of
 * the CPU device for this type and instruction set; kernels/ops.h describes each.
 */
#ifndef KERNELS_CPU_OPERATIONS_H
#define KERNELS_CPU_OPERATIONS_H

#include <omp.h>
#include <tgmath.h>

#include "kernels/cpu/cpu.h"

#define WLB_JOIN_(prefix, name, suffix) prefix##name##_##suffix
#define WLB_JOIN(prefix, name, suffix) WLB_JOIN_(prefix, name, suffix)
#define VARIANT(name) WLB_JOIN(wlb_cpu_, name, WLB_CPU_VARIANT)

#if WLB_CPU_DOUBLE
typedef double real;
typedef uint64_t real_bits;
typedef int64_t real_order;
#define REAL_ORDER_MAX INT64_MAX
#define GEMM(blas) ((blas).dgemm)
typedef __typeof__(cblas_dgemm) *gemm_function;
#define EXP_MAGIC 0x1.8p52
#define EXP_ONE_BITS 0x3ff0000000000000U
#define EXP_MANTISSA_BITS 52
#define EXP_MIN (-708.0)
#define EXP_MAX 709.0
#define EXP_LN2_HIGH 0x1.62e42fee00000p-1
#define EXP_LN2_LOW 0x1.a39ef35793c76p-33
#else
typedef float real;
typedef uint32_t real_bits;
typedef int32_t real_order;
#define REAL_ORDER_MAX INT32_MAX
#define GEMM(blas) ((blas).sgemm)
typedef __typeof__(cblas_sgemm) *gemm_function;
#define EXP_MAGIC 0x1.8p23f
#define EXP_ONE_BITS 0x3f800000U
#define EXP_MANTISSA_BITS 23
#define EXP_MIN (-87.0f)
#define EXP_MAX 88.0f
#define EXP_LN2_HIGH 0x1.62e400p-1f
#define EXP_LN2_LOW 0x1.7f7d1cp-20f
#endif

/* Prefetches the memory that a loop over arrays reads next. The processor's own prefetcher stops at the end of a page;
 * without this, loops over arrays larger than the caches waited for memory for a fifth of their time. */
enum { PREFETCH_REALS = 2048 / sizeof(real), PREFETCH_LINE_REALS = 64 / sizeof(real) };

static inline void wlb_prefetch(const real *at, int64_t n)
{
	for (int64_t i = 0; i < n; i += PREFETCH_LINE_REALS)
		__builtin_prefetch(at + PREFETCH_REALS + i);
}

/* Evaluates the Taylor series of exp around 0; for |r| <= ln(2)/2 the truncation error is below half a unit in the last
 * place. */
static inline real wlb_exp_series(real r)
{
#if WLB_CPU_DOUBLE
	static const double c[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800,
	                           1.0 / 362880,     1.0 / 40320,     1.0 / 5040,     1.0 / 720,
	                           1.0 / 120,        1.0 / 24,        1.0 / 6,        1.0 / 2};
#else
	static const float c[] = {1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 1.0f / 2};
#endif
	real p = c[0];
	for (size_t i = 1; i < sizeof(c) / sizeof(c[0]); i++)
		p = p * r + c[i];
	return (p * r + 1) * r + 1;
}

/* exp(x) = 2^n exp(r). Adding EXP_MAGIC leaves the nearest integer n in the low bits of the mantissa; a shift turns
 * them into the exponent of 2^n. The result is 0 below EXP_MIN and exp(EXP_MAX) above EXP_MAX; NaN stays NaN. */
static inline real wlb_exp(real x)
{
	union {
		real value;
		real_bits bits;
	} n, power;
	real in = x < EXP_MIN ? EXP_MIN : x > EXP_MAX ? EXP_MAX : x;
	n.value = in * (real)1.44269504088896340736 + EXP_MAGIC;
	real whole = n.value - EXP_MAGIC;
	real r = (in - whole * EXP_LN2_HIGH) - whole * EXP_LN2_LOW;
	power.bits = (n.bits << EXP_MANTISSA_BITS) + EXP_ONE_BITS;
	real y = wlb_exp_series(r) * power.value;
	return x < EXP_MIN ? 0 : y;
}

/* Its error is that of a number near 1, also where the result is small. */
static inline real wlb_tanh(real x)
{
	return 1 - 2 / (wlb_exp(2 * x) + 1);
}

/* The derivative of c tanh(x / c), from that value and 1 / c; 1 where 1 / c is 0, which is that of no soft cap. */
static inline real wlb_softcap_slope(real capped, real inverse_cap)
{
	return inverse_cap > 0 ? 1 - capped * inverse_cap * (capped * inverse_cap) : 1;
}

/* Maps the bits of a number to an integer with the same order as the numbers (NaN above all others). The function is
 * its own inverse. */
static inline real_order wlb_ordered_bits(real_order bits)
{
	return bits ^ ((bits >> (8 * sizeof(real) - 1)) & REAL_ORDER_MAX);
}

union wlb_real_bits {
	real value;
	real_order bits;
};

/* Returns the largest of `floor` and x[0 .. n), or NaN where one of them is NaN. It compares integers, because
 * compilers do not vectorise a maximum of numbers that may be NaN. */
static inline real wlb_max(real floor, const real *x, int64_t n)
{
	real_order most = wlb_ordered_bits((union wlb_real_bits){.value = floor}.bits);
#pragma omp simd reduction(max : most)
	for (int64_t i = 0; i < n; i++) {
		real_order at = wlb_ordered_bits((union wlb_real_bits){.value = x[i]}.bits);
		most = at > most ? at : most;
	}
	return (union wlb_real_bits){.bits = wlb_ordered_bits(most)}.value;
}

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
                              const void *residual, const void *weight, double addend, int64_t tokens, int64_t width,
                              double epsilon);
void VARIANT(rmsnorm_backward)(struct wlb_device *, void *d_x, void *d_weight, const void *d_out, const void *x,
                               const void *weight, double addend, const void *rstd, int64_t tokens, int64_t width);
void VARIANT(add_bias)(struct wlb_device *, void *y, int64_t stride, const void *bias, int64_t n, int64_t width);
void VARIANT(bias_backward)(struct wlb_device *, void *d_bias, const void *d_y, int64_t stride, int64_t n,
                            int64_t width);
void VARIANT(group_norm_sums)(struct wlb_device *, void *sums, const void *x, int64_t x_stride, const void *d,
                              int64_t d_stride, const void *weight, const struct wlb_norm_groups *);
void VARIANT(group_norm_forward)(struct wlb_device *, void *out, int64_t out_stride, const void *x, int64_t x_stride,
                                 const void *squares, const void *weight, const struct wlb_norm_groups *);
void VARIANT(group_norm_backward)(struct wlb_device *, void *d, int64_t d_stride, void *d_weight, const void *x,
                                  int64_t x_stride, const void *squares, const void *products, const void *weight,
                                  const struct wlb_norm_groups *);
void VARIANT(rope_angles)(struct wlb_device *, void *angles, const int32_t *positions, int64_t tokens,
                          const double *frequencies, int pairs, double scale);
void VARIANT(rope)(struct wlb_device *, void *x, int64_t stride, const void *angles, int64_t tokens, int heads,
                   int head_dim, int pairs, int direction);
void VARIANT(attention_forward)(struct wlb_device *, void *out, void *lse, const void *q, const void *k, const void *v,
                                const struct wlb_segments *, const struct wlb_attention_shape *);
void VARIANT(attention_backward)(struct wlb_device *, void *d_q, void *d_k, void *d_v, const void *d_out, const void *q,
                                 const void *k, const void *v, const void *out, const void *lse,
                                 const struct wlb_segments *, const struct wlb_attention_shape *);
void VARIANT(swiglu_forward)(struct wlb_device *, void *out, const void *gate_up, int64_t n, int64_t width);
void VARIANT(swiglu_backward)(struct wlb_device *, void *gate_up, void *d_out, int64_t n, int64_t width);
void VARIANT(geglu_forward)(struct wlb_device *, void *out, const void *gate_up, int64_t n, int64_t width);
void VARIANT(geglu_backward)(struct wlb_device *, void *gate_up, void *d_out, int64_t n, int64_t width);
void VARIANT(cross_entropy_statistics)(struct wlb_device *, void *statistics, const void *logits,
                                       const int32_t *targets, int64_t tokens, int64_t first, int64_t count);
void VARIANT(cross_entropy_gradient)(struct wlb_device *, double *loss_sum, void *logits, const void *statistics,
                                     int parts, const int32_t *targets, int64_t tokens, int64_t first, int64_t count,
                                     double scale, double softcap);
void VARIANT(gather_rows)(struct wlb_device *, void *out, int64_t out_stride, const void *x, int64_t x_stride,
                          const int32_t *rows, int64_t count, int64_t width);
void VARIANT(scale)(struct wlb_device *, void *x, double factor, int64_t n);
void VARIANT(softcap)(struct wlb_device *, void *x, double cap, int64_t n);
void VARIANT(add)(struct wlb_device *, void *y, const void *x, int64_t n);
void VARIANT(sum_squares)(struct wlb_device *, double *sum, const void *x, int64_t n);
void VARIANT(clip_factor)(struct wlb_device *, double *factor, const double *sum_squares, const double *loss_sum,
                          double clip, double most_norm);
void VARIANT(adamw)(struct wlb_device *, void *param, void *master, const void *grad, void *m, void *v, int64_t n,
                    const struct wlb_adamw *, const double *factor);

#endif

/*
 * Defines the element type of this compilation, and functions on it that the compiler can vectorise in loops.
 */
#ifndef KERNELS_CPU_REAL_H
#define KERNELS_CPU_REAL_H

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
#define EXP_LEAST (-708.0)
#define EXP_MOST 709.0
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
#define EXP_LEAST (-87.0f)
#define EXP_MOST 88.0f
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
 * them into the exponent of 2^n. The result is 0 below EXP_LEAST and exp(EXP_MOST) above EXP_MOST; NaN stays NaN. */
static inline real wlb_exp(real x)
{
	union {
		real value;
		real_bits bits;
	} n, power;
	real in = x < EXP_LEAST ? EXP_LEAST : x > EXP_MOST ? EXP_MOST : x;
	n.value = in * (real)1.44269504088896340736 + EXP_MAGIC;
	real whole = n.value - EXP_MAGIC;
	real r = (in - whole * EXP_LN2_HIGH) - whole * EXP_LN2_LOW;
	power.bits = (n.bits << EXP_MANTISSA_BITS) + EXP_ONE_BITS;
	real y = wlb_exp_series(r) * power.value;
	return x < EXP_LEAST ? 0 : y;
}

/* Maps the bits of a number to an integer with the same order as the numbers (NaN above all others). The function is
 * its own inverse. */
static inline real_order wlb_order(real_order bits)
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
	real_order most = wlb_order((union wlb_real_bits){.value = floor}.bits);
#pragma omp simd reduction(max : most)
	for (int64_t i = 0; i < n; i++) {
		real_order at = wlb_order((union wlb_real_bits){.value = x[i]}.bits);
		most = at > most ? at : most;
	}
	return (union wlb_real_bits){.bits = wlb_order(most)}.value;
}

#endif

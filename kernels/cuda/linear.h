/*
 * Linear layers by cuBLASLt: y = x W^T and its two gradients. Sums are in float32, from bfloat16 or float32, and
 * rounded once to the type of the result; float32 is never shortened to TF32. A bfloat16 result that is added to in
 * place (d_x or d_w with `add`, a residual that is y) may have two roundings: on Hopper cuBLASLt rounds the product to
 * bfloat16 and adds that to what is in memory, as a framework does which adds the gradient of a micro-batch to those
 * before.
 *
 * Every matrix is row-major device memory with a row stride of its own. The result must not overlap another operand,
 * but the residual may be y itself, with the same stride. Types: both factors are WLB_BFLOAT16 or both are WLB_FLOAT32;
 * the result has their type, or is WLB_FLOAT32; a residual has the type of the result. An error (a type, a stride, a
 * product that cuBLASLt does not have) is kept for synchronize() with the operation and its sizes; the operation then
 * has no effect.
 *
 * The products use one workspace, so all of them are queued on one stream. Once a product's shape, strides, types and
 * alignment have been used (product_plans.h), queuing it allocates nothing.
 */
#ifndef KERNELS_CUDA_LINEAR_H
#define KERNELS_CUDA_LINEAR_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wlb_cuda_matrix {
	void *values; /* not written where it is an input */
	enum wlb_dtype type;
	int64_t row_stride; /* elements from a row to the next; at least the columns */
};

/* W[out, in], as Hugging Face stores it. Scales of FP8 values belong here. */
struct wlb_cuda_weight {
	const void *values;
	enum wlb_dtype type;
	int64_t row_stride;
};

/* Where one is 0 nothing is done. */
struct wlb_cuda_linear_size {
	int64_t n;   /* rows of x and y: tokens */
	int64_t in;  /* columns of x */
	int64_t out; /* columns of y */
};

/* Bytes of the workspace, for every GPU: what cuBLAS recommends for Hopper and Blackwell, more than for others (cuBLAS
 * documentation, cublasSetWorkspace). */
enum { WLB_CUDA_LINEAR_WORKSPACE_BYTES = 32 << 20 };

struct wlb_cuda_linear;

/* Loads cuBLASLt and reserves the workspace. The products are queued on `stream`, which must outlive the result, as
 * must the device. Returns NULL with the reason on failure. */
struct wlb_cuda_linear *wlb_cuda_linear_open(struct wlb_device *device, cudaStream_t stream, struct wlb_error *error);
void wlb_cuda_linear_close(struct wlb_cuda_linear *linear); /* waits for its products; NULL allowed */

/* y[n, out] = x[n, in] W[out, in]^T (+ residual[n, out]; NULL: none) */
void wlb_cuda_linear_forward(struct wlb_cuda_linear *linear, const struct wlb_cuda_matrix *y,
                             const struct wlb_cuda_matrix *x, const struct wlb_cuda_weight *w,
                             const struct wlb_cuda_matrix *residual, const struct wlb_cuda_linear_size *size);
/* d_x[n, in] = d_y[n, out] W[out, in], or d_x += it where `add` is 1 */
void wlb_cuda_linear_d_x(struct wlb_cuda_linear *linear, const struct wlb_cuda_matrix *d_x,
                         const struct wlb_cuda_matrix *d_y, const struct wlb_cuda_weight *w, int add,
                         const struct wlb_cuda_linear_size *size);
/* d_w[out, in] = d_y[n, out]^T x[n, in]; added to d_w where `add` is 1. With no rows d_w is unchanged. */
void wlb_cuda_linear_d_w(struct wlb_cuda_linear *linear, const struct wlb_cuda_matrix *d_w,
                         const struct wlb_cuda_matrix *d_y, const struct wlb_cuda_matrix *x, int add,
                         const struct wlb_cuda_linear_size *size);

#ifdef __cplusplus
}
#endif

#endif

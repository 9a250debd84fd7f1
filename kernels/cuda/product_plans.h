/*
 * Plans of matrix products: cuBLASLt's descriptors and the algorithm that it chooses, kept by all that the choice
 * depends on.
 *
 * The choice is the first of cuBLASLt's heuristic, a function of the product, the kind of GPU and the release of the
 * library alone; so a product has the same algorithm in every process and its results the same bits. Of the ways to add
 * the parts of a sum that is split over blocks only that is allowed which keeps the parts in float32 and adds them in
 * a step of its own: the others round the parts to the result's type. With a workspace that one stream uses, cuBLAS
 * promises the same bits in every run on GPUs of the same architecture and number of multiprocessors (cuBLAS
 * documentation, "Results reproducibility").
 */
#ifndef KERNELS_CUDA_PRODUCT_PLANS_H
#define KERNELS_CUDA_PRODUCT_PLANS_H

#include "kernels/cuda/cublas.h"
#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A row-major matrix. */
struct wlb_cuda_operand {
	int64_t rows;
	int64_t columns;
	int64_t row_stride; /* elements */
	int32_t type;       /* enum wlb_dtype: WLB_FLOAT32 or WLB_BFLOAT16 */
	int32_t alignment;  /* bytes that its address is a multiple of, 16 at most */
};

/* d^T = op(a^T) op(b^T) + beta c^T, which is what cuBLASLt computes, whose matrices are column-major. A key of the
 * cache: it has no padding. */
struct wlb_cuda_product {
	struct wlb_cuda_operand a, b, c, d; /* c as d where beta is 0 */
	int32_t transpose_a;                /* 0 or 1 */
	int32_t transpose_b;
	int32_t beta; /* 0 or 1 */
	int32_t zero;
};

struct wlb_cuda_plan {
	struct wlb_cuda_product product;
	uint64_t last_use; /* 0: there is no plan here */
	cublasLtMatmulDescOpaque_t operation;
	cublasLtMatrixLayoutOpaque_t a, b, c, d;
	cublasLtMatmulAlgo_t algorithm;
	size_t workspace_bytes; /* that the algorithm uses */
};

/* At most 1,024 plans: 256 sets of four. A plan is in the set of its product's hash, in place of the one there that was
 * used longest ago. */
enum { WLB_CUDA_PLAN_SETS = 256, WLB_CUDA_PLANS_OF_SET = 4 };

struct wlb_cuda_plans {
	const struct wlb_cublas *cublas;
	cublasLtHandle_t handle;
	size_t workspace_bytes; /* that an algorithm may use */
	uint64_t uses;
	struct wlb_cuda_plan plans[WLB_CUDA_PLAN_SETS][WLB_CUDA_PLANS_OF_SET];
};

/* The plan of a product, made where there is none; valid until the next call. Allocates nothing. Returns NULL with the
 * reason where cuBLASLt has no algorithm. */
const struct wlb_cuda_plan *wlb_cuda_plan_of(struct wlb_cuda_plans *plans, const struct wlb_cuda_product *product,
                                             struct wlb_error *error);

#ifdef __cplusplus
}
#endif

#endif

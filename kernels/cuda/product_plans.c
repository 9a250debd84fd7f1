#include "kernels/cuda/product_plans.h"

#include <string.h>

#include "libwlb/hash.h"

_Static_assert(sizeof(struct wlb_cuda_product) == 4 * 32 + 16, "a key that is compared as bytes has no padding");

static uint64_t hash_of(const struct wlb_cuda_product *product)
{
	uint64_t hash = wlb_hash_bytes(WLB_HASH_OF_NOTHING, product, sizeof(*product));
	return hash ^ hash >> 32;
}

static cudaDataType_t cuda_type(int32_t type)
{
	return type == WLB_BFLOAT16 ? CUDA_R_16BF : CUDA_R_32F;
}

static cublasStatus_t describe_matrix(const struct wlb_cublas *cublas, cublasLtMatrixLayoutOpaque_t *layout,
                                      const struct wlb_cuda_operand *operand)
{
	return cublas->cublasLtMatrixLayoutInit_internal(layout, sizeof(*layout), cuda_type(operand->type),
	                                                 (uint64_t)operand->columns, (uint64_t)operand->rows,
	                                                 operand->row_stride);
}

/* CUBLAS_COMPUTE_32F multiplies float32 as such: it never shortens them to TF32. */
static cublasStatus_t describe(const struct wlb_cublas *cublas, struct wlb_cuda_plan *plan)
{
	const struct wlb_cuda_product *product = &plan->product;
	const int32_t transpose_a = product->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
	const int32_t transpose_b = product->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
	cublasLtMatmulDesc_t operation = &plan->operation;
	cublasStatus_t status =
		cublas->cublasLtMatmulDescInit_internal(operation, sizeof(*operation), CUBLAS_COMPUTE_32F, CUDA_R_32F);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = cublas->cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &transpose_a,
		                                                sizeof(transpose_a));
	if (status == CUBLAS_STATUS_SUCCESS)
		status = cublas->cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSB, &transpose_b,
		                                                sizeof(transpose_b));
	if (status == CUBLAS_STATUS_SUCCESS)
		status = describe_matrix(cublas, &plan->a, &product->a);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = describe_matrix(cublas, &plan->b, &product->b);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = describe_matrix(cublas, &plan->c, &product->c);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = describe_matrix(cublas, &plan->d, &product->d);
	return status;
}

static cublasStatus_t prefer(const struct wlb_cuda_plans *plans, const struct wlb_cuda_product *product,
                             cublasLtMatmulPreferenceOpaque_t *preference)
{
	const uint64_t workspace_bytes = plans->workspace_bytes;
	const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
	const uint32_t a = (uint32_t)product->a.alignment, b = (uint32_t)product->b.alignment;
	const uint32_t c = (uint32_t)product->c.alignment, d = (uint32_t)product->d.alignment;
	const struct {
		cublasLtMatmulPreferenceAttributes_t attribute;
		const void *value;
		size_t bytes;
	} wanted[] = {
		{CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes, sizeof(workspace_bytes)},
		{CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions, sizeof(reductions)},
		{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &a, sizeof(a)},
		{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &b, sizeof(b)},
		{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &c, sizeof(c)},
		{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &d, sizeof(d)},
	};
	const struct wlb_cublas *cublas = plans->cublas;
	cublasStatus_t status = cublas->cublasLtMatmulPreferenceInit_internal(preference, sizeof(*preference));
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]) && status == CUBLAS_STATUS_SUCCESS; i++)
		status = cublas->cublasLtMatmulPreferenceSetAttribute(preference, wanted[i].attribute, wanted[i].value,
		                                                      wanted[i].bytes);
	return status;
}

static int make_plan(const struct wlb_cuda_plans *plans, struct wlb_cuda_plan *plan, struct wlb_error *error)
{
	const struct wlb_cublas *cublas = plans->cublas;
	cublasLtMatmulPreferenceOpaque_t preference;
	cublasLtMatmulHeuristicResult_t first = {.state = CUBLAS_STATUS_NOT_SUPPORTED};
	int found = 0;
	cublasStatus_t status = describe(cublas, plan);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = prefer(plans, &plan->product, &preference);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = cublas->cublasLtMatmulAlgoGetHeuristic(plans->handle, &plan->operation, &plan->a, &plan->b,
		                                                &plan->c, &plan->d, &preference, 1, &first, &found);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = found > 0 ? first.state : CUBLAS_STATUS_NOT_SUPPORTED;
	if (status != CUBLAS_STATUS_SUCCESS)
		return wlb_fail(error, "cuBLASLt has no algorithm for it (%s)", cublas->cublasLtGetStatusName(status));
	plan->algorithm = first.algo;
	plan->workspace_bytes = first.workspaceSize;
	return 0;
}

const struct wlb_cuda_plan *wlb_cuda_plan_of(struct wlb_cuda_plans *plans, const struct wlb_cuda_product *product,
                                             struct wlb_error *error)
{
	struct wlb_cuda_plan *set = plans->plans[hash_of(product) % WLB_CUDA_PLAN_SETS], *oldest = set;
	for (int i = 0; i < WLB_CUDA_PLANS_OF_SET; i++) {
		struct wlb_cuda_plan *plan = &set[i];
		if (plan->last_use != 0 && memcmp(&plan->product, product, sizeof(*product)) == 0) {
			plan->last_use = ++plans->uses;
			return plan;
		}
		if (plan->last_use < oldest->last_use)
			oldest = plan;
	}
	oldest->last_use = 0;
	oldest->product = *product;
	if (make_plan(plans, oldest, error) != 0)
		return NULL;
	oldest->last_use = ++plans->uses;
	return oldest;
}

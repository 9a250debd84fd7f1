#include "kernels/cuda/linear.h"

#include <inttypes.h>
#include <stdlib.h>

#include "kernels/cuda/product_plans.h"

enum { KERNELS_BYTES = 512 << 20 }; /* cuBLASLt's own kernels take less */

struct wlb_cuda_linear {
	struct wlb_device *device;
	cudaStream_t stream;
	struct wlb_cublas cublas;
	struct wlb_cuda_plans plans;
	void *workspace;
};

/* One call: what errors name, and the operands of d = op(a) op(b) + c in cuBLASLt's order. */
struct call {
	struct wlb_cuda_linear *linear;
	const char *operation;
	const struct wlb_cuda_linear_size *size;
	const void *a, *b, *c;
	void *d;
	struct wlb_cuda_product product;
};

/* An address is aligned to 16 bytes or less as far as the choice of an algorithm goes: no copy is wider, and a result
 * must not depend on where else a matrix happens to lie. */
static int32_t alignment_of(const void *values)
{
	const uintptr_t widest = 16, address = (uintptr_t)values | widest;
	return (int32_t)(address & -address);
}

static struct wlb_cuda_operand operand(const void *values, enum wlb_dtype type, int64_t row_stride, int64_t rows,
                                       int64_t columns)
{
	return (struct wlb_cuda_operand){rows, columns, row_stride, (int32_t)type, alignment_of(values)};
}

static struct wlb_cuda_operand operand_of(const struct wlb_cuda_matrix *matrix, int64_t rows, int64_t columns)
{
	return operand(matrix->values, matrix->type, matrix->row_stride, rows, columns);
}

static struct wlb_cuda_operand operand_of_weight(const struct wlb_cuda_weight *w,
                                                 const struct wlb_cuda_linear_size *size)
{
	return operand(w->values, w->type, w->row_stride, size->out, size->in);
}

static const char *type_name(const struct wlb_cuda_operand *operand)
{
	return wlb_dtype_name((enum wlb_dtype)operand->type);
}

static void fail(const struct call *call, const char *reason)
{
	const struct wlb_cuda_product *p = &call->product;
	wlb_cuda_fail(call->linear->device,
	              "%s of %" PRId64 " rows, %" PRId64 " in, %" PRId64 " out, %s and %s to %s, row strides %" PRId64
	              ", %" PRId64 ", %" PRId64 ", %" PRId64 ": %s",
	              call->operation, call->size->n, call->size->in, call->size->out, type_name(&p->a),
	              type_name(&p->b), type_name(&p->d), p->a.row_stride, p->b.row_stride, p->c.row_stride,
	              p->d.row_stride, reason);
}

/* Returns what is wrong with the operands, or NULL. cuBLASLt would say no more than that it has no algorithm. */
static const char *refusal(const struct call *call)
{
	const struct wlb_cuda_product *p = &call->product;
	const struct wlb_cuda_operand *const all[] = {&p->a, &p->b, &p->c, &p->d};
	if (call->size->n < 0 || call->size->in < 0 || call->size->out < 0)
		return "a size is negative";
	for (int i = 0; i < 4; i++) {
		if (all[i]->type != WLB_FLOAT32 && all[i]->type != WLB_BFLOAT16)
			return "an element type is neither float32 nor bfloat16";
		if (all[i]->row_stride < all[i]->columns)
			return "a row stride is less than the columns of its matrix";
		if (all[i]->alignment < (int32_t)wlb_dtype_bytes((enum wlb_dtype)all[i]->type))
			return "an address is not a multiple of the element's size";
	}
	if (p->a.type != p->b.type)
		return "the factors must have one element type";
	if (p->d.type != p->a.type && p->d.type != WLB_FLOAT32)
		return "the result must have the element type of the factors, or float32";
	if (p->c.type != p->d.type)
		return "what is added must have the element type of the result";
	return NULL;
}

/* cuBLASLt loads its kernels with the first products, and has several codes for the lack of memory for them. */
static void note_status(cublasStatus_t status)
{
	if (status == CUBLAS_STATUS_SUCCESS)
		return;
	int64_t free_bytes = wlb_cuda_free_bytes();
	if (status == CUBLAS_STATUS_ALLOC_FAILED || (free_bytes >= 0 && free_bytes < KERNELS_BYTES))
		wlb_cuda_note_error(cudaErrorMemoryAllocation);
}

static void multiply(const struct call *call)
{
	struct wlb_cuda_linear *linear = call->linear;
	struct wlb_error error;
	const char *wrong = refusal(call);
	if (wrong != NULL) {
		fail(call, wrong);
		return;
	}
	if (call->size->n == 0 || call->size->in == 0 || call->size->out == 0)
		return;
	const struct wlb_cuda_plan *plan = wlb_cuda_plan_of(&linear->plans, &call->product, &error);
	if (plan == NULL) {
		fail(call, error.message);
		return;
	}
	const float one = 1, beta = (float)call->product.beta;
	/* cuBLASLt does not change the descriptors, whatever their types say. */
	struct wlb_cuda_plan *p = (struct wlb_cuda_plan *)plan;
	cublasStatus_t status = linear->cublas.cublasLtMatmul(
		linear->plans.handle, &p->operation, &one, call->a, &p->a, call->b, &p->b, &beta, call->c, &p->c,
		call->d, &p->d, &p->algorithm, linear->workspace, p->workspace_bytes, linear->stream);
	note_status(status);
	if (status != CUBLAS_STATUS_SUCCESS)
		fail(call, linear->cublas.cublasLtGetStatusName(status));
}

void wlb_cuda_linear_forward(struct wlb_cuda_linear *linear, const struct wlb_cuda_matrix *y,
                             const struct wlb_cuda_matrix *x, const struct wlb_cuda_weight *w,
                             const struct wlb_cuda_matrix *residual, const struct wlb_cuda_linear_size *size)
{
	const struct wlb_cuda_matrix *c = residual != NULL ? residual : y;
	const struct call call = {
		.linear = linear,
		.operation = "linear_forward",
		.size = size,
		.a = w->values,
		.b = x->values,
		.c = c->values,
		.d = y->values,
		.product = {operand_of_weight(w, size), operand_of(x, size->n, size->in),
	                    operand_of(c, size->n, size->out), operand_of(y, size->n, size->out), .transpose_a = 1,
	                    .beta = residual != NULL},
	};
	multiply(&call);
}

void wlb_cuda_linear_d_x(struct wlb_cuda_linear *linear, const struct wlb_cuda_matrix *d_x,
                         const struct wlb_cuda_matrix *d_y, const struct wlb_cuda_weight *w, int add,
                         const struct wlb_cuda_linear_size *size)
{
	const struct wlb_cuda_operand result = operand_of(d_x, size->n, size->in);
	const struct call call = {
		.linear = linear,
		.operation = "linear_d_x",
		.size = size,
		.a = w->values,
		.b = d_y->values,
		.c = d_x->values,
		.d = d_x->values,
		.product = {operand_of_weight(w, size), operand_of(d_y, size->n, size->out), result, result,
	                    .beta = add != 0},
	};
	multiply(&call);
}

void wlb_cuda_linear_d_w(struct wlb_cuda_linear *linear, const struct wlb_cuda_matrix *d_w,
                         const struct wlb_cuda_matrix *d_y, const struct wlb_cuda_matrix *x, int add,
                         const struct wlb_cuda_linear_size *size)
{
	const struct wlb_cuda_operand result = operand_of(d_w, size->out, size->in);
	const struct call call = {
		.linear = linear,
		.operation = "linear_d_w",
		.size = size,
		.a = x->values,
		.b = d_y->values,
		.c = d_w->values,
		.d = d_w->values,
		.product = {operand_of(x, size->n, size->in), operand_of(d_y, size->n, size->out), result, result,
	                    .transpose_b = 1, .beta = add != 0},
	};
	multiply(&call);
}

struct wlb_cuda_linear *wlb_cuda_linear_open(struct wlb_device *device, cudaStream_t stream, struct wlb_error *error)
{
	struct wlb_cuda_linear *linear = calloc(1, sizeof(*linear));
	if (linear == NULL) {
		wlb_fail(error, "device %s: out of host memory", device->name);
		return NULL;
	}
	linear->device = device;
	linear->stream = stream;
	linear->plans.cublas = &linear->cublas;
	linear->plans.workspace_bytes = WLB_CUDA_LINEAR_WORKSPACE_BYTES;
	if (wlb_cublas_load(&linear->cublas, error) != 0) {
		wlb_fail_in(error, "device %s", device->name);
		free(linear);
		return NULL;
	}
	cublasStatus_t status = linear->cublas.cublasLtCreate(&linear->plans.handle);
	note_status(status);
	linear->workspace = wlb_cuda_malloc(device, WLB_CUDA_LINEAR_WORKSPACE_BYTES, error);
	if (status == CUBLAS_STATUS_SUCCESS && linear->workspace != NULL)
		return linear;
	if (status != CUBLAS_STATUS_SUCCESS)
		wlb_fail(error, "device %s: cannot start cuBLASLt: %s", device->name,
		         linear->cublas.cublasLtGetStatusName(status));
	else
		wlb_fail_in(error, "the workspace of matrix products");
	wlb_cuda_linear_close(linear);
	return NULL;
}

void wlb_cuda_linear_close(struct wlb_cuda_linear *linear)
{
	if (linear == NULL)
		return;
	wlb_cuda_check(linear->device, wlb_cuda_free(linear->device, linear->workspace), "linear_close");
	if (linear->plans.handle != NULL)
		linear->cublas.cublasLtDestroy(linear->plans.handle);
	free(linear);
}

/* -- the operations of kernels/ops.h: the products with the element types of the device -- */

static struct wlb_cuda_matrix matrix_of(const void *values, enum wlb_dtype type, int64_t row_stride)
{
	return (struct wlb_cuda_matrix){(void *)values, type, row_stride};
}

static struct wlb_cuda_weight weight_of(const struct wlb_device *device, const struct wlb_weight *w)
{
	return (struct wlb_cuda_weight){w->values, device->compute, w->in};
}

void wlb_cuda_linear_op(struct wlb_device *device, void *y, int64_t y_stride, const void *x, int64_t x_stride,
                        const struct wlb_weight *w, const void *residual, int64_t n)
{
	const struct wlb_cuda_matrix results = matrix_of(y, device->compute, y_stride);
	const struct wlb_cuda_matrix rows = matrix_of(x, device->compute, x_stride);
	const struct wlb_cuda_matrix added = matrix_of(residual, device->compute, y_stride);
	const struct wlb_cuda_weight values = weight_of(device, w);
	const struct wlb_cuda_linear_size size = {n, w->in, w->out};
	wlb_cuda_linear_forward(wlb_cuda_of(device)->linear, &results, &rows, &values, residual != NULL ? &added : NULL,
	                        &size);
}

void wlb_cuda_linear_d_x_op(struct wlb_device *device, void *d_x, int64_t d_x_stride, const void *d_y,
                            int64_t d_y_stride, const struct wlb_weight *w, int add, int64_t n)
{
	const struct wlb_cuda_matrix results = matrix_of(d_x, device->compute, d_x_stride);
	const struct wlb_cuda_matrix rows = matrix_of(d_y, device->compute, d_y_stride);
	const struct wlb_cuda_weight values = weight_of(device, w);
	const struct wlb_cuda_linear_size size = {n, w->in, w->out};
	wlb_cuda_linear_d_x(wlb_cuda_of(device)->linear, &results, &rows, &values, add, &size);
}

void wlb_cuda_linear_d_w_op(struct wlb_device *device, void *d_w, const void *d_y, int64_t d_y_stride, const void *x,
                            int64_t x_stride, int add, int64_t n, int64_t out, int64_t in)
{
	const struct wlb_cuda_matrix results = matrix_of(d_w, device->gradients, in);
	const struct wlb_cuda_matrix gradients = matrix_of(d_y, device->compute, d_y_stride);
	const struct wlb_cuda_matrix rows = matrix_of(x, device->compute, x_stride);
	const struct wlb_cuda_linear_size size = {n, in, out};
	wlb_cuda_linear_d_w(wlb_cuda_of(device)->linear, &results, &gradients, &rows, add, &size);
}

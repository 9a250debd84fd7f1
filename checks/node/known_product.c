#include "checks/node/known_product.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks/node/place.h"
#include "checks/node/random.h"

enum { KINDS = 3, SHAPES = WLB_KNOWN_PRODUCTS / KINDS };

static const struct {
	int64_t n, out, in; /* 512 at most */
} shapes[SHAPES] = {{256, 384, 256}, {97, 160, 131}, {64, 33, 512}};

int wlb_next_factor(uint64_t *state)
{
	uint64_t random = wlb_next_random(state);
	int size = 1 + (int)(random % 8);
	return random >> 63 ? -size : size;
}

size_t wlb_matrix_bytes(const struct wlb_host_matrix *matrix)
{
	return (size_t)(matrix->rows * matrix->columns) * wlb_dtype_bytes(matrix->dtype);
}

int wlb_matrix_make(struct wlb_host_matrix *matrix, enum wlb_dtype dtype, int64_t rows, int64_t columns,
                    struct wlb_error *error)
{
	*matrix = (struct wlb_host_matrix){.dtype = dtype, .rows = rows, .columns = columns};
	matrix->values = calloc(1, wlb_matrix_bytes(matrix));
	return matrix->values != NULL ? 0 : wlb_fail(error, "out of memory for known results");
}

int wlb_matrix_differs(const struct wlb_host_matrix *matrix, const void *got, char *text, size_t size)
{
	size_t bytes = wlb_dtype_bytes(matrix->dtype);
	int64_t count = matrix->rows * matrix->columns, first = -1, differ = 0;
	if (memcmp(matrix->values, got, wlb_matrix_bytes(matrix)) == 0)
		return 0;
	for (int64_t i = 0; i < count; i++)
		if (memcmp((const char *)matrix->values + (size_t)i * bytes, (const char *)got + (size_t)i * bytes,
		           bytes) != 0) {
			first = first < 0 ? i : first;
			differ++;
		}
	if (first < 0) /* the memory gave other bits when it was read again */
		snprintf(text, size, "the first comparison failed, a second one of the same result did not");
	else
		snprintf(text, size, "element (%lld, %lld) is %.9g, not %.9g; %lld of %lld elements differ",
		         (long long)(first / matrix->columns), (long long)(first % matrix->columns),
		         wlb_dtype_load(matrix->dtype, got, first),
		         wlb_dtype_load(matrix->dtype, matrix->values, first), (long long)differ, (long long)count);
	return 1;
}

/* The whole numbers of a factor, beside its elements: a row of `left` times a row of `right` is an element of the
 * result. */
struct factor {
	int8_t *numbers;
	int64_t row, depth; /* distance of rows and of the terms of a sum */
};

static int fill(struct wlb_host_matrix *matrix, enum wlb_dtype dtype, int64_t rows, int64_t columns, uint64_t *state,
                struct factor *factor, struct wlb_error *error)
{
	factor->numbers = malloc((size_t)(rows * columns));
	if (factor->numbers == NULL || wlb_matrix_make(matrix, dtype, rows, columns, error) < 0)
		return wlb_fail(error, "out of memory for known results");
	for (int64_t i = 0; i < rows * columns; i++) {
		factor->numbers[i] = (int8_t)wlb_next_factor(state);
		wlb_dtype_store(dtype, matrix->values, i, factor->numbers[i]);
	}
	return 0;
}

static void multiply(const struct factor *left, const struct factor *right, int64_t depth,
                     struct wlb_host_matrix *result)
{
	for (int64_t i = 0; i < result->rows; i++)
		for (int64_t j = 0; j < result->columns; j++) {
			const int8_t *a = left->numbers + i * left->row, *b = right->numbers + j * right->row;
			int32_t sum = 0;
			for (int64_t k = 0; k < depth; k++)
				sum += a[k * left->depth] * b[k * right->depth];
			wlb_dtype_store(result->dtype, result->values, i * result->columns + j, sum);
		}
}

/* Fills the factors of a product, and computes its result. */
static int complete(struct wlb_known_product *p, enum wlb_dtype compute, enum wlb_dtype main, struct factor *left,
                    struct factor *right, uint64_t *state, struct wlb_error *error)
{
	const struct {
		int64_t left_columns, right_rows, right_columns, result_rows, result_columns, depth;
		struct factor left, right;
	} of[KINDS] =
		{
			[WLB_PRODUCT_FORWARD] =
				{p->in, p->out, p->in, p->n, p->out, p->in, {NULL, p->in, 1}, {NULL, p->in, 1}},
			[WLB_PRODUCT_INPUT_GRADIENT] =
				{p->out, p->out, p->in, p->n, p->in, p->out, {NULL, p->out, 1}, {NULL, 1, p->in}},
			[WLB_PRODUCT_WEIGHT_GRADIENT] =
				{p->out, p->n, p->in, p->out, p->in, p->n, {NULL, 1, p->out}, {NULL, 1, p->in}},
		},
	  *o = &of[p->kind];
	*left = o->left;
	*right = o->right;
	if (fill(&p->left, compute, p->n, o->left_columns, state, left, error) < 0 ||
	    fill(&p->right, compute, o->right_rows, o->right_columns, state, right, error) < 0 ||
	    wlb_matrix_make(&p->result, p->kind == WLB_PRODUCT_WEIGHT_GRADIENT ? main : compute, o->result_rows,
	                    o->result_columns, error) < 0)
		return -1;
	multiply(left, right, o->depth, &p->result);
	return 0;
}

int wlb_known_products_make(enum wlb_dtype compute, uint64_t seed, struct wlb_known_product list[WLB_KNOWN_PRODUCTS],
                            struct wlb_error *error)
{
	enum wlb_dtype main = wlb_main_dtype(compute);
	uint64_t state = seed;
	int rc = 0;
	memset(list, 0, WLB_KNOWN_PRODUCTS * sizeof(*list));
	for (int i = 0; i < WLB_KNOWN_PRODUCTS && rc == 0; i++) {
		struct wlb_known_product *p = &list[i];
		struct factor left = {0}, right = {0};
		p->kind = (enum wlb_product_kind)(i % KINDS);
		p->n = shapes[i / KINDS].n;
		p->out = shapes[i / KINDS].out;
		p->in = shapes[i / KINDS].in;
		rc = complete(p, compute, main, &left, &right, &state, error);
		free(left.numbers);
		free(right.numbers);
	}
	return rc;
}

void wlb_known_products_free(struct wlb_known_product list[WLB_KNOWN_PRODUCTS])
{
	for (int i = 0; i < WLB_KNOWN_PRODUCTS; i++) {
		free(list[i].left.values);
		free(list[i].right.values);
		free(list[i].result.values);
	}
	memset(list, 0, WLB_KNOWN_PRODUCTS * sizeof(*list));
}

void wlb_known_product_queue(struct wlb_device *device, const struct wlb_known_product *product, void *result,
                             const void *left, const void *right)
{
	const struct wlb_weight weight = {right, product->out, product->in};
	const struct wlb_ops *ops = device->ops;
	switch (product->kind) {
	case WLB_PRODUCT_FORWARD:
		ops->linear(device, result, product->out, left, product->in, &weight, NULL, product->n);
		break;
	case WLB_PRODUCT_INPUT_GRADIENT:
		ops->linear_d_x(device, result, product->in, left, product->out, &weight, 0, product->n);
		break;
	case WLB_PRODUCT_WEIGHT_GRADIENT:
		ops->linear_d_w(device, result, left, product->out, right, product->in, 0, product->n, product->out,
		                product->in);
		break;
	}
}

void wlb_known_product_name(const struct wlb_known_product *product, char *text, size_t size)
{
	static const char *const names[KINDS] = {"x W^T", "d_y W", "d_y^T x"};
	snprintf(text, size, "%s of %lld x %lld x %lld", names[product->kind], (long long)product->n,
	         (long long)product->in, (long long)product->out);
}

/*
 * Compares the products of kernels/cuda/linear.h with sums in double precision, over shapes, strides, types and what is
 * added, and checks that a second run gives the same bits and that nothing between the rows is written.
 *
 * The bound. u = 2^-23: the unit of an addition in float32 that cuts bits off instead of rounding, as tensor cores do
 * (Fasi, Higham, Mikaitis & Pranesh 2021). A sum of k products and what it is added to, in any order, differs from the
 * exact one by at most (k + 2) u times the sum of the absolute values (Higham 2002, section 3.1: gamma_n is n u to
 * first order; one more unit for the rest of it). The result is then rounded once to its type, by a half unit in the
 * last place: 2^-8 of it in bfloat16, 2^-24 in float32. A bfloat16 result that is added to in place may have had its
 * product rounded before (linear.h), by 2^-8 of that, which is much more than of the sum where the two cancel.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/linear.h"

enum operation { FORWARD, FORWARD_RESIDUAL, D_X, D_X_ADD, D_W, D_W_ADD, OPERATIONS };

static const char *const NAMES[] = {"linear_forward",  "linear + residual", "linear_d_x",
                                    "linear_d_x, add", "linear_d_w",        "linear_d_w, add"};

static const struct types {
	enum wlb_dtype factors, result;
	const char *name;
} TYPES[] = {{WLB_BFLOAT16, WLB_BFLOAT16, "bf16 to bf16"},
             {WLB_BFLOAT16, WLB_FLOAT32, "bf16 to fp32"},
             {WLB_FLOAT32, WLB_FLOAT32, "fp32 to fp32"}};
enum { TYPE_COUNT = sizeof(TYPES) / sizeof(TYPES[0]) };

/* One, odd, multiples of a tile and around them, none. */
static const struct wlb_cuda_linear_size SIZES[] = {{1, 1, 1},      {1, 8, 3},      {5, 3, 7}, {33, 65, 17},
                                                    {127, 129, 64}, {64, 128, 256}, {0, 16, 8}};
enum { SIZE_COUNT = sizeof(SIZES) / sizeof(SIZES[0]) };

/* A matrix begins so many elements into its memory, and its row stride is the columns and so many more, twice or three
 * times for some: 8 keeps rows of every type on 16 bytes, 1 does not. */
static const int64_t GAPS[] = {0, 8, 1};
enum { GAP_COUNT = sizeof(GAPS) / sizeof(GAPS[0]) };

struct matrix {
	int64_t rows, columns, stride;
	enum wlb_dtype type;
	size_t bytes;
	void *host; /* as the device has it */
	void *memory;
	void *device; /* in the memory */
};

/* -- matrices -- */

static double value_at(const struct matrix *m, int64_t row, int64_t column)
{
	return wlb_dtype_load(m->type, m->host, row * m->stride + column);
}

/* Numbers from -1 to 1 by the seed; all ones, which is not a number, between the rows. Returns 0, or -1. */
static int make(struct wlb_device *device, struct matrix *m, int64_t rows, int64_t columns, int64_t gap,
                enum wlb_dtype type, uint32_t seed)
{
	*m = (struct matrix){rows, columns, columns + gap, type, 0, NULL, NULL, NULL};
	m->bytes = (size_t)(rows * m->stride) * wlb_dtype_bytes(type);
	m->host = malloc(m->bytes + 1);
	m->memory = device->ops->alloc(device, m->bytes + (size_t)gap * wlb_dtype_bytes(type), NULL);
	if (m->host == NULL || m->memory == NULL)
		return -1;
	m->device = (char *)m->memory + (size_t)gap * wlb_dtype_bytes(type);
	memset(m->host, 0xff, m->bytes);
	uint32_t state = seed * 2654435761U + 12345;
	for (int64_t row = 0; row < rows; row++)
		for (int64_t column = 0; column < columns; column++) {
			state = state * 1664525U + 1013904223U;
			wlb_dtype_store(type, m->host, row * m->stride + column, (double)(state >> 8) / (1 << 23) - 1);
		}
	device->ops->to_device(device, NULL, m->device, m->host, m->bytes);
	return 0;
}

static void drop(struct wlb_device *device, struct matrix *m)
{
	device->ops->release(device, m->memory);
	free(m->host);
}

static struct wlb_cuda_matrix matrix_of(const struct matrix *m)
{
	return (struct wlb_cuda_matrix){m->device, m->type, m->stride};
}

/* -- one product -- */

/* left and right are x and W, d_y and W, or d_y and x; `added` is the residual. */
struct operands {
	struct matrix left, right, added, result;
};

static int make_operands(struct wlb_device *device, enum operation operation, const struct types *types,
                         const struct wlb_cuda_linear_size *size, int64_t gap, struct operands *o)
{
	const int64_t n = size->n, in = size->in, out = size->out;
	const int64_t rows = operation >= D_W ? out : n, columns = operation <= FORWARD_RESIDUAL ? out : in;
	memset(o, 0, sizeof(*o));
	if (make(device, &o->left, n, operation <= FORWARD_RESIDUAL ? in : out, gap, types->factors, 1) != 0 ||
	    make(device, &o->right, operation >= D_W ? n : out, in, 2 * gap, types->factors, 2) != 0 ||
	    make(device, &o->added, rows, columns, 3 * gap, types->result, 3) != 0)
		return -1;
	return make(device, &o->result, rows, columns, gap, types->result, 4);
}

static void drop_operands(struct wlb_device *device, struct operands *o)
{
	drop(device, &o->left);
	drop(device, &o->right);
	drop(device, &o->added);
	drop(device, &o->result);
}

static void queue(struct wlb_cuda_linear *linear, enum operation operation, const struct wlb_cuda_linear_size *size,
                  const struct operands *o)
{
	const struct wlb_cuda_matrix left = matrix_of(&o->left), right = matrix_of(&o->right);
	const struct wlb_cuda_matrix added = matrix_of(&o->added), result = matrix_of(&o->result);
	const struct wlb_cuda_weight weight = {o->right.device, o->right.type, o->right.stride};
	if (operation <= FORWARD_RESIDUAL)
		wlb_cuda_linear_forward(linear, &result, &left, &weight, operation == FORWARD ? NULL : &added, size);
	else if (operation >= D_W)
		wlb_cuda_linear_d_w(linear, &result, &left, &right, operation == D_W_ADD, size);
	else
		wlb_cuda_linear_d_x(linear, &result, &left, &weight, operation == D_X_ADD, size);
}

/* |got - want| over its bound, for one element; `before` is the result before the product. */
static double element_error(enum operation operation, const struct wlb_cuda_linear_size *size, const struct operands *o,
                            const struct matrix *before, int64_t row, int64_t column)
{
	const int64_t k = operation >= D_W ? size->n : operation <= FORWARD_RESIDUAL ? size->in : size->out;
	/* A product of no rows leaves its result as it was. */
	const int in_place = operation == D_X_ADD || operation == D_W_ADD || k == 0;
	double added = 0, product = 0;
	if (operation == FORWARD_RESIDUAL)
		added = value_at(&o->added, row, column);
	else if (in_place)
		added = value_at(before, row, column);
	double absolute = fabs(added);
	for (int64_t i = 0; i < k; i++) {
		const double left = operation >= D_W ? value_at(&o->left, i, row) : value_at(&o->left, row, i);
		const double right =
			operation <= FORWARD_RESIDUAL ? value_at(&o->right, column, i) : value_at(&o->right, i, column);
		product += left * right;
		absolute += fabs(left * right);
	}
	const int is_bfloat16 = o->result.type == WLB_BFLOAT16;
	const double want = product + added, roundoff = ldexp(1, is_bfloat16 ? -8 : -24);
	double bound = (double)(k + 2) * ldexp(absolute, -23);
	if (in_place && is_bfloat16)
		bound += (fabs(product) + bound) * roundoff;
	bound += (fabs(want) + bound) * roundoff;
	const double error = fabs(value_at(&o->result, row, column) - want) / bound;
	return isnan(error) ? INFINITY : error;
}

static double largest_error(enum operation operation, const struct wlb_cuda_linear_size *size, const struct operands *o,
                            const struct matrix *before)
{
	const struct matrix *r = &o->result;
	const size_t element = wlb_dtype_bytes(r->type);
	double largest = 0;
	for (int64_t row = 0; row < r->rows && size->in > 0; row++) {
		for (int64_t column = 0; column < r->columns; column++)
			largest = fmax(largest, element_error(operation, size, o, before, row, column));
		const size_t gap = (size_t)(row * r->stride + r->columns) * element;
		if (memcmp((char *)r->host + gap, (char *)before->host + gap,
		           (size_t)(r->stride - r->columns) * element) != 0)
			return INFINITY;
	}
	return largest;
}

/* Runs the product twice from the same operands. Returns the largest error over its bound; infinity where it failed or
 * the second run differs, which is printed. */
static double run(struct wlb_device *device, struct wlb_cuda_linear *linear, enum operation operation,
                  const struct types *types, const struct wlb_cuda_linear_size *size, int64_t gap)
{
	struct operands o;
	struct wlb_error error = {"out of memory"};
	double largest = INFINITY;
	if (make_operands(device, operation, types, size, gap, &o) == 0) {
		struct matrix before = o.result;
		void *first = malloc(before.bytes + 1);
		before.host = malloc(before.bytes + 1);
		memcpy(before.host, o.result.host, before.bytes);
		queue(linear, operation, size, &o);
		device->ops->to_host(device, first, o.result.device, o.result.bytes);
		device->ops->to_device(device, NULL, o.result.device, before.host, o.result.bytes);
		queue(linear, operation, size, &o);
		device->ops->to_host(device, o.result.host, o.result.device, o.result.bytes);
		if (device->ops->synchronize(device, &error) == 0) {
			snprintf(error.message, sizeof(error.message), "a second run differs");
			if (memcmp(first, o.result.host, o.result.bytes) == 0)
				largest = largest_error(operation, size, &o, &before);
		}
		free(first);
		free(before.host);
	}
	drop_operands(device, &o);
	if (largest > 1)
		printf("%-20s n %lld, in %lld, out %lld, gap %lld: %s\n", NAMES[operation], (long long)size->n,
		       (long long)size->in, (long long)size->out, (long long)gap,
		       isinf(largest) ? error.message : "beyond the bound");
	return largest;
}

/* Returns whether every product is within its bound; prints a row of the table for each operation and type. */
int wlb_check_linear(struct wlb_device *device)
{
	struct wlb_error error;
	struct wlb_cuda_linear *linear = wlb_cuda_linear_open(device, wlb_cuda_of(device)->stream, &error);
	if (linear == NULL) {
		printf("%-20s FAILED: %s\n", "linear", error.message);
		return 0;
	}
	int passed = 1;
	for (int operation = 0; operation < OPERATIONS; operation++)
		for (int t = 0; t < TYPE_COUNT; t++) {
			double largest = 0;
			for (int s = 0; s < SIZE_COUNT; s++)
				for (int g = 0; g < GAP_COUNT; g++)
					largest = fmax(largest, run(device, linear, (enum operation)operation,
					                            &TYPES[t], &SIZES[s], GAPS[g]));
			printf("%-20s %-22s error %.2f of the bound, second run same  %s\n", NAMES[operation],
			       TYPES[t].name, largest, largest <= 1 ? "ok" : "FAILED");
			passed &= largest <= 1;
		}
	wlb_cuda_linear_close(linear);
	return passed;
}

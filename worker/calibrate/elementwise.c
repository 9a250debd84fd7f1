#include "worker/calibrate/elementwise.h"

#include <math.h>
#include <stdlib.h>

#include "worker/calibrate/filled_memory.h"
#include "worker/calibrate/stopwatch.h"

/* Vectors of 16 to 64 MiB each: together they are larger than a cache. */
enum { VECTORS = 4, COUNT = 8 << 20 };

/* Rows of the operations that have rows, and of the tables whose rows are gathered. */
enum { WIDTH = 1024, ROWS = COUNT / WIDTH };

/* The rows of the two calls that are measured. */
enum { FEW = 32, MANY = 2048 };

struct elementwise {
	void *vectors[VECTORS]; /* [ROWS, WIDTH] of type compute */
	/* Of AdamW, as many: of type compute, gradients, master and master. Where a device has one type the first three
	 * are vectors; else the masters are their lower halves. The second moments are not negative. */
	void *masters, *gradients, *first_moments, *second_moments;
	void *weight;        /* [WIDTH] */
	void *d_weight;      /* gradients; [WIDTH] */
	void *numbers;       /* master; [ROWS, 3]: of rows, for RMSNorm and cross-entropy */
	int32_t *indices;    /* device memory; [ROWS], of rows */
	double *sum;         /* device memory */
	void *angles;        /* master; [MANY, head_dim] */
	double *frequencies; /* device memory; [head_dim / 2] */
	double *factor;      /* device memory; of AdamW, and the two sums that it is found from */
	int head_dim;
	int64_t rows, n; /* of a call; n = rows x WIDTH */
	int64_t cursor;  /* the first element of it */
};

/* Returns the elements of an array that this call works on. */
static void *part(const struct elementwise *e, void *array, enum wlb_dtype dtype)
{
	return (char *)array + (size_t)e->cursor * wlb_dtype_bytes(dtype);
}

static const struct wlb_ops *next(struct wlb_device *device, struct elementwise *e)
{
	e->cursor = e->cursor + 2 * e->n <= COUNT ? e->cursor + e->n : 0;
	return device->ops;
}

/* Calls an operation of kernels/ops.h on the next elements, with the arguments after the device. */
#define OPERATION(name, ...)                                                                                           \
	static void name(struct wlb_device *device, void *context)                                                     \
	{                                                                                                              \
		struct elementwise *e = context;                                                                       \
		next(device, e)->name(device, __VA_ARGS__);                                                            \
	}

#define PART(vector) part(e, e->vectors[vector], device->compute)
#define MASTER_PART(array) part(e, e->array, device->master)
#define GRADIENTS part(e, e->gradients, device->gradients)

static const struct wlb_adamw adamw_settings = {.lr = 1e-6, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .step = 1};

OPERATION(embedding_forward, PART(0), e->vectors[1], e->indices, e->rows, WIDTH, 0, ROWS)
OPERATION(embedding_backward, e->gradients, PART(0), e->indices, e->rows, WIDTH, 0, ROWS)
OPERATION(rmsnorm_forward, PART(0), e->numbers, NULL, PART(1), NULL, e->weight, 0.0, e->rows, WIDTH, 1e-5)
OPERATION(rmsnorm_backward, PART(0), e->d_weight, PART(1), PART(2), e->weight, 0.0, e->numbers, e->rows, WIDTH)
OPERATION(swiglu_forward, PART(0), PART(1), e->rows, WIDTH / 2)
OPERATION(swiglu_backward, PART(2), PART(1), e->rows, WIDTH / 2)
OPERATION(rope_angles, e->angles, e->indices, e->rows, e->frequencies, e->head_dim / 2, 1.0)
OPERATION(rope, PART(0), WIDTH, e->angles, e->rows, WIDTH / e->head_dim, e->head_dim, e->head_dim / 2, 1)
OPERATION(cross_entropy_statistics, e->numbers, PART(3), e->indices, e->rows, 0, WIDTH)
OPERATION(cross_entropy_gradient, e->sum, PART(3), e->numbers, 1, e->indices, e->rows, 0, WIDTH, 1.0, 0.0)
OPERATION(gather_rows, PART(0), WIDTH, e->vectors[1], WIDTH, e->indices, e->rows, WIDTH)
OPERATION(add, PART(0), PART(1), e->n)
OPERATION(sum_squares, e->sum, GRADIENTS, e->n)
OPERATION(adamw, PART(0), part(e, e->masters, device->compute), GRADIENTS, MASTER_PART(first_moments),
          MASTER_PART(second_moments), e->n, &adamw_settings, e->factor)
OPERATION(zero, PART(0), (size_t)e->n *wlb_dtype_bytes(device->compute))
OPERATION(copy, PART(0), PART(1), (size_t)e->n *wlb_dtype_bytes(device->compute))

/* In this order each finds finite numbers: rope reads the angles before it, the gradient of cross-entropy the
 * statistics before it, of logits that nothing else writes. */
static const struct {
	enum wlb_op op;
	wlb_operation *operation;
	int counts; /* 1: its traffic counts for memory_bytes_per_s */
} operations[] = {
	{WLB_OP_ADD, add, 1},
	{WLB_OP_COPY, copy, 1},
	{WLB_OP_ADAMW, adamw, 1},
	{WLB_OP_SUM_SQUARES, sum_squares, 0},
	{WLB_OP_GATHER_ROWS, gather_rows, 0},
	{WLB_OP_EMBEDDING_FORWARD, embedding_forward, 0},
	{WLB_OP_EMBEDDING_BACKWARD, embedding_backward, 0},
	{WLB_OP_RMSNORM_FORWARD, rmsnorm_forward, 1},
	{WLB_OP_RMSNORM_BACKWARD, rmsnorm_backward, 0},
	{WLB_OP_SWIGLU_FORWARD, swiglu_forward, 0},
	{WLB_OP_SWIGLU_BACKWARD, swiglu_backward, 0},
	{WLB_OP_ROPE_ANGLES, rope_angles, 0},
	{WLB_OP_ROPE, rope, 0},
	{WLB_OP_CROSS_ENTROPY_STATISTICS, cross_entropy_statistics, 0},
	{WLB_OP_CROSS_ENTROPY_GRADIENT, cross_entropy_gradient, 0},
	{WLB_OP_ZERO, zero, 0},
};

enum { MEASURED = sizeof(operations) / sizeof(operations[0]) };

static void add_one(struct wlb_device *device, void *context)
{
	const struct elementwise *e = context;
	device->ops->add(device, e->weight, e->vectors[3], 1);
}

/* Sets the indices to rows that are far from each other, each below WIDTH, since they are targets too. */
static int fill_indices(struct wlb_device *device, struct elementwise *e, struct wlb_error *error)
{
	int32_t indices_host[ROWS];
	for (int32_t i = 0; i < ROWS; i++)
		indices_host[i] = i * 389 % WIDTH;
	device->ops->to_device(device, NULL, e->indices, indices_host, sizeof(indices_host));
	return device->ops->synchronize(device, error);
}

/* Sets the frequencies of Llama 1. */
static int fill_frequencies(struct wlb_device *device, struct elementwise *e, struct wlb_error *error)
{
	const struct wlb_model model = {.head_dim = e->head_dim, .rope_theta = 1e4};
	size_t bytes = (size_t)e->head_dim / 2 * sizeof(*e->frequencies);
	double *frequencies_host = malloc(bytes + 1);
	e->frequencies = device->ops->alloc(device, bytes, error);
	if (frequencies_host == NULL || e->frequencies == NULL) {
		free(frequencies_host);
		return frequencies_host == NULL ? wlb_fail(error, "out of memory for frequencies") : -1;
	}
	wlb_rope_frequencies(&model, WLB_ANGLES_GLOBAL, frequencies_host);
	device->ops->to_device(device, NULL, e->frequencies, frequencies_host, bytes);
	free(frequencies_host);
	return 0;
}

/* The arrays of AdamW. A device of one type updates the masters in place. */
static int allocate_adamw(struct wlb_device *device, struct elementwise *e, struct wlb_error *error)
{
	if (device->compute == device->master) {
		e->masters = e->vectors[0];
		e->gradients = e->vectors[1];
		e->first_moments = e->vectors[2];
	} else {
		e->masters = wlb_alloc_filled(device, device->compute, COUNT, error);
		e->gradients = e->masters != NULL ? wlb_alloc_filled(device, device->gradients, COUNT, error) : NULL;
		e->first_moments = e->gradients != NULL ? wlb_alloc_filled(device, device->master, COUNT, error) : NULL;
	}
	e->second_moments = e->first_moments != NULL
	                            ? device->ops->alloc(device, COUNT * wlb_dtype_bytes(device->master), error)
	                            : NULL;
	e->factor = e->second_moments != NULL ? device->ops->alloc(device, 3 * sizeof(*e->factor), error) : NULL;
	if (e->factor == NULL)
		return -1;
	device->ops->zero(device, e->second_moments, COUNT * wlb_dtype_bytes(device->master)); /* gives it its pages */
	device->ops->clip_factor(device, e->factor, e->factor + 1, e->factor + 2, 0.0,
	                         INFINITY); /* 1: the sums are 0 */
	return 0;
}

static int allocate(struct wlb_device *device, struct elementwise *e, int head_dim, struct wlb_error *error)
{
	*e = (struct elementwise){.head_dim = head_dim};
	const struct {
		void **memory;
		enum wlb_dtype dtype;
		int64_t count;
	} all[] = {{&e->vectors[0], device->compute, COUNT},
	           {&e->vectors[1], device->compute, COUNT},
	           {&e->vectors[2], device->compute, COUNT},
	           {&e->vectors[3], device->compute, COUNT},
	           {&e->weight, device->compute, WIDTH},
	           {&e->d_weight, device->gradients, WIDTH},
	           {&e->numbers, device->master, (int64_t)3 * ROWS},
	           {&e->angles, device->master, (int64_t)MANY * head_dim}};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if ((*all[i].memory = wlb_alloc_filled(device, all[i].dtype, all[i].count, error)) == NULL)
			return -1;
	e->indices = device->ops->alloc(device, ROWS * sizeof(*e->indices), error);
	e->sum = e->indices != NULL ? device->ops->alloc(device, sizeof(*e->sum), error) : NULL;
	if (e->sum == NULL || allocate_adamw(device, e, error) < 0 || fill_frequencies(device, e, error) < 0)
		return -1;
	return fill_indices(device, e, error);
}

static void release(struct wlb_device *device, struct elementwise *e)
{
	void *const own[] = {e->masters, e->gradients, e->first_moments};
	void *const others[] = {e->second_moments, e->weight, e->d_weight,   e->numbers, e->indices, e->sum,
	                        e->angles,         e->factor, e->frequencies};
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (own[i] != e->vectors[i])
			device->ops->release(device, own[i]);
	for (int i = 0; i < VECTORS; i++)
		device->ops->release(device, e->vectors[i]);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		device->ops->release(device, others[i]);
}

/* Returns the bytes that the operation reads and writes of an element. AdamW reads and writes masters, of which the
 * weight may be a half, and moments, and reads a gradient. */
static double element_traffic(const struct wlb_device *device, enum wlb_op op)
{
	if (op == WLB_OP_ADAMW && device->compute != device->master)
		return (double)(6 * wlb_dtype_bytes(device->master) + wlb_dtype_bytes(device->gradients));
	return wlb_op_traffic(op) * (double)wlb_dtype_bytes(device->compute);
}

/* Returns the elements of a row, as enum wlb_op counts them. */
static double row_elements(const struct elementwise *e, enum wlb_op op)
{
	switch (op) {
	case WLB_OP_SWIGLU_FORWARD:
	case WLB_OP_SWIGLU_BACKWARD:
		return 0.5 * WIDTH;
	case WLB_OP_ROPE:
		return (double)(WIDTH / e->head_dim * e->head_dim);
	case WLB_OP_ROPE_ANGLES:
		return 0.5 * e->head_dim;
	default:
		return WIDTH;
	}
}

static int measure_rows(struct wlb_device *device, struct elementwise *e, wlb_operation *operation, int rows,
                        double limit_s, double *seconds, struct wlb_error *error)
{
	e->rows = rows;
	e->n = (int64_t)rows * WIDTH;
	return wlb_stopwatch(device, operation, e, limit_s, seconds, error);
}

static int measure_one(struct wlb_device *device, struct elementwise *e, int i, double limit_s,
                       struct wlb_op_time *time, struct wlb_error *error)
{
	double few_s, many_s, elements = row_elements(e, operations[i].op);
	if (measure_rows(device, e, operations[i].operation, FEW, 0.3 * limit_s, &few_s, error) < 0 ||
	    measure_rows(device, e, operations[i].operation, MANY, 0.7 * limit_s, &many_s, error) < 0)
		return wlb_fail_in(error, "%s", wlb_op_name(operations[i].op));
	double row_s = (many_s - few_s) / (MANY - FEW);
	/* Where few rows take as long as many, or less for each, there is no fixed time to tell from theirs. */
	if (!(row_s > 0.0 && row_s * FEW <= few_s))
		row_s = many_s / MANY;
	*time = (struct wlb_op_time){.call_s = fmax(0.0, few_s - row_s * FEW), .element_s = row_s / elements};
	return 0;
}

int wlb_measure_elementwise(struct wlb_device *device, int head_dim, double limit_s, struct wlb_elementwise *measured,
                            struct wlb_error *error)
{
	struct elementwise e;
	double bytes = 0.0, all_s = 0.0;
	int rc = allocate(device, &e, head_dim, error);
	*measured = (struct wlb_elementwise){0};
	for (int i = 0; rc == 0 && i < MEASURED; i++) {
		struct wlb_op_time *time = &measured->operations[operations[i].op];
		rc = measure_one(device, &e, i, limit_s / MEASURED, time, error);
		if (rc == 0 && operations[i].counts) {
			bytes += element_traffic(device, operations[i].op);
			all_s += time->element_s;
		}
	}
	if (rc == 0)
		rc = wlb_stopwatch(device, add_one, &e, 0.01, &measured->operation_s, error);
	release(device, &e);
	if (rc == 0)
		measured->memory_bytes_per_s = bytes / all_s;
	return rc;
}

struct wlb_traffic {
	struct elementwise e;
};

static void add_and_copy(struct wlb_device *device, void *context)
{
	add(device, context);
	copy(device, context);
}

struct wlb_traffic *wlb_traffic_new(struct wlb_device *device, struct wlb_error *error)
{
	struct wlb_traffic *traffic = calloc(1, sizeof(*traffic));
	if (traffic == NULL) {
		wlb_fail(error, "out of memory for vectors");
		return NULL;
	}
	struct elementwise *e = &traffic->e;
	*e = (struct elementwise){.rows = MANY, .n = (int64_t)MANY * WIDTH};
	_Static_assert(MANY * WIDTH == WLB_TRAFFIC_ELEMENTS, "the elements of a call");
	for (int i = 0; i < 2; i++)
		if ((e->vectors[i] = wlb_alloc_filled(device, device->compute, COUNT, error)) == NULL) {
			wlb_traffic_free(device, traffic);
			return NULL;
		}
	return traffic;
}

void wlb_traffic_free(struct wlb_device *device, struct wlb_traffic *traffic)
{
	if (traffic != NULL)
		release(device, &traffic->e);
	free(traffic);
}

double wlb_traffic_busy_s(struct wlb_device *device, struct wlb_traffic *traffic, int count, struct wlb_error *error)
{
	return wlb_busy_s(device, add_and_copy, &traffic->e, count, error);
}

/*
 * Checks of single kernels against plain loops in double precision: check_kernels.c runs them; check_kernel_cases.c,
 * check_loss_cases.c and check_vector_cases.c have them.
 *
 * A bound is derived from rounding: the unit roundoff of the type of the result times its magnitude, and for what was
 * computed in float32 before it FLOAT_ROUNDOFF times the magnitude of each term times the roundings that it went
 * through.
 */
#ifndef TESTS_GPU_CHECK_KERNELS_H
#define TESTS_GPU_CHECK_KERNELS_H

#include "kernels/cuda/cuda.h"

#define FLOAT_ROUNDOFF 0x1p-24
#define BFLOAT16_ROUNDOFF 0x1p-8
#define DOUBLE_ROUNDOFF 0x1p-53

enum { CHECK_ARRAYS = 6 };

/* CHECK_GRADIENTS is of the type of weights' gradients, CHECK_SUM of doubles. */
enum check_kind { CHECK_NONE, CHECK_COMPUTE, CHECK_MAIN, CHECK_GRADIENTS, CHECK_SUM, CHECK_INDEX };

/* An array of device memory. Its values on the host are in double. */
struct check_array {
	enum check_kind kind;
	int64_t count;
	double low, high; /* it is filled with random numbers in [low, high): whole ones where it is an index */
	double *before;   /* what it is filled with */
	double *got;      /* what it holds after the kernel */
	double *want;     /* what it should hold: at first `before` */
	double *bound;    /* the most by which got may differ from want: at first 0 */
	void *memory;     /* on the device: `offset` elements past the start of `allocation` */
	void *allocation;
	void *host; /* the elements as they are on the device */
};

/* `rows` of `width` elements; `extra` as each check reads it; rows are `pad` elements apart where there are strides;
 * addresses are `offset` elements past a multiple of 256 bytes. */
struct check_shape {
	int64_t rows, width, extra, pad;
	int offset;
};

struct check_trial {
	struct wlb_device *device;
	const struct check_shape *shape;
	struct check_array arrays[CHECK_ARRAYS];
};

struct check_case {
	const char *name;
	const struct check_shape *shapes;
	int shape_count;
	void (*plan)(struct check_trial *);    /* kinds, counts and ranges of the arrays */
	void (*prepare)(struct check_trial *); /* NULL, or sets `before` of arrays that depend on others */
	void (*run)(struct check_trial *);
	void (*expect)(struct check_trial *); /* sets want and bound */
};

extern const struct check_case CHECK_CASES[], CHECK_LOSS_CASES[], CHECK_VECTOR_CASES[];
extern const int CHECK_CASE_COUNT, CHECK_LOSS_CASE_COUNT, CHECK_VECTOR_CASE_COUNT;

static inline struct check_array check_array_of(enum check_kind kind, int64_t count, double low, double high)
{
	return (struct check_array){.kind = kind, .count = count, .low = low, .high = high};
}

/* Roundings of a sum of `terms` in a block or a warp: a thread adds at most every 32nd of them, and the sums of at most
 * 32 lanes and 32 warps are added to each other. */
double check_sum_roundings(int64_t terms);

/* Sets want[i], which is rounded once more, to the type of the array, from a float32 that has the error `float_error`.
 * A result below the smallest normal float32 may be 0. */
void check_want(const struct check_trial *trial, struct check_array *array, int64_t i, double want, double float_error);

/* Runs every case on every shape in float32 and bfloat16, those that have gradients of weights also with these in
 * bfloat16, prints a line for each and counts them; `only`: cases whose names begin so, NULL: all. Returns the number
 * of trials; device NULL: it only returns that. */
int wlb_check_kernels(struct wlb_device *device, const char *only, int *passed, int *failed);

#endif

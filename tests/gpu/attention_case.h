/*
 * Cases of attention on the CUDA device, run on a GPU by check_attention.c and on the host by tests/cuda_host: every
 * head_dim, bfloat16 and float32, grouped queries, documents of skewed lengths, chunks of documents that share keys,
 * strided matrices. What the device computes is compared with plain loops in double.
 */
#ifndef TESTS_GPU_ATTENTION_CASE_H
#define TESTS_GPU_ATTENTION_CASE_H

#include "kernels/cuda/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which matrices are columns of one: none; q, k and v; k and v. So are their gradients. */
enum attention_layout { ATTENTION_SEPARATE, ATTENTION_QKV, ATTENTION_KV };

struct attention_case {
	const char *name;
	const struct wlb_segment *segments;
	int count, q_rows, k_rows; /* rows of q and k; some are in no segment */
	enum attention_layout layout;
	int heads, kv_heads;
	int window;    /* 0: none */
	float softcap; /* 0: none */
};

extern const struct attention_case ATTENTION_CASES[];
extern const int ATTENTION_CASE_COUNT;

enum { ATTENTION_BUFFERS = 10 };

/* One run: what is in device memory, before and after. */
struct attention_run {
	const struct attention_case *of;
	int is_bf16, head_dim;
	size_t bytes[ATTENTION_BUFFERS];
	unsigned char *before[ATTENTION_BUFFERS];
	unsigned char *after[ATTENTION_BUFFERS];
};

/* Runs both passes. Returns -1 with the reason; the run must be freed in any case. */
int attention_case_run(struct attention_run *run, struct wlb_device *device, const struct attention_case *of,
                       int is_bf16, int head_dim, struct wlb_error *error);
void attention_case_free(struct attention_run *run);

/* Returns the largest |got - want| / bound of all results, where a bound follows from the roundings of that element
 * (attention_reference.c); infinity where something is not a number or a row of no segment has changed. */
double attention_case_error(const struct attention_run *run);

/* Whether two runs of a case left the same bits. */
int attention_case_same(const struct attention_run *one, const struct attention_run *other);

/* -- for attention_reference.c -- */

enum attention_matrix { MATRIX_Q, MATRIX_K, MATRIX_V, MATRIX_D_Q, MATRIX_D_K, MATRIX_D_V, MATRIX_OUT, MATRIX_D_OUT };
enum { BUFFER_LSE = 8, BUFFER_DELTA = 9 };

/* Where a matrix is: in which buffer, and its columns there. */
struct attention_place {
	int buffer;
	int64_t offset, stride; /* elements */
	int rows, heads;
};
struct attention_place attention_place_of(const struct attention_case *of, int head_dim, enum attention_matrix matrix);

/* An element of a matrix before or after the run. */
double attention_element(const struct attention_run *run, unsigned char *const *buffers, enum attention_matrix matrix,
                         int row, int head, int column);

#ifdef __cplusplus
}
#endif

#endif

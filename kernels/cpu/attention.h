/*
 * Declares what attention's forward and backward passes share: small matrix products of query tiles and key tiles.
 */
#ifndef KERNELS_CPU_ATTENTION_H
#define KERNELS_CPU_ATTENTION_H

#include <string.h>

#include "kernels/cpu/operations.h"

/* A tile of scores (128 KiB in double) stays in the level-2 cache. */
enum { TILE_QUERIES = 64, TILE_KEYS = 256, TILE_SCORES = TILE_QUERIES * TILE_KEYS };

/* Row strides and softmax scale of one call. */
struct geometry {
	gemm_function gemm;
	int head_dim;
	int group; /* query heads for each key head */
	int64_t q_stride;
	int64_t kv_stride;
	int64_t out_stride;
	int64_t lse_stride;
	int window;
	real scale;
	real softcap; /* 0: none */
};

static inline struct geometry geometry_of(struct wlb_device *device, const struct wlb_attention_shape *shape)
{
	return (struct geometry){
		.gemm = GEMM(wlb_cpu_of(device)->blas),
		.head_dim = shape->head_dim,
		.group = shape->heads / shape->kv_heads,
		.q_stride = shape->q_stride,
		.kv_stride = shape->kv_stride,
		.out_stride = shape->out_stride,
		.lse_stride = shape->heads,
		.window = shape->window,
		.scale = (real)(1 / sqrt((double)shape->head_dim)),
		.softcap = (real)shape->softcap,
	};
}

/* Returns the end of the keys that query i of the segment sees: the key after its own, or that after the last. */
static inline int visible_keys(const struct wlb_segment *segment, int i)
{
	int64_t visible = (int64_t)segment->q_offset + i + 1;
	return visible < 0 ? 0 : visible > segment->k_count ? segment->k_count : (int)visible;
}

/* Returns the first of them, which may be beyond the segment's keys: those before it are not within the window. */
static inline int first_visible_key(const struct wlb_segment *segment, int window, int i)
{
	int64_t first = window > 0 ? (int64_t)segment->q_offset + i + 1 - window : 0;
	return first > 0 ? (int)first : 0;
}

static inline int least(int a, int b)
{
	return a < b ? a : b;
}

/* The scores of a query in a tile that are of keys it sees: [low, high), empty where it sees none. */
struct visible {
	int low, high;
};

/* Returns those of query i in the tile of the keys [start, start + keys). */
static inline struct visible visible_scores(const struct wlb_segment *segment, int window, int i, int start, int keys)
{
	int low = first_visible_key(segment, window, i) - start, high = least(visible_keys(segment, i) - start, keys);
	low = low > 0 ? low : 0;
	return high > low ? (struct visible){low, high} : (struct visible){0, 0};
}

/* Sets the scores that are not visible to 0. */
static inline void clear_masked(real *scores, struct visible visible, int keys)
{
	memset(scores, 0, (size_t)visible.low * sizeof(real));
	memset(scores + visible.high, 0, (size_t)(keys - visible.high) * sizeof(real));
}

/* Returns whether there is enough work for more than one thread. */
static inline int use_threads(const struct wlb_segments *segments, const struct wlb_attention_shape *shape)
{
	int64_t multiplications = 0;
	for (int s = 0; s < segments->count && multiplications < WLB_CPU_PARALLEL_MULTIPLICATIONS; s++)
		multiplications += (int64_t)segments->segments[s].q_count * segments->segments[s].k_count *
		                   shape->heads * shape->head_dim;
	return multiplications >= WLB_CPU_PARALLEL_MULTIPLICATIONS;
}

enum { NOT_TRANSPOSED = CblasNoTrans, TRANSPOSED = CblasTrans };

/* c[m,n] = alpha op(a)[m,k] op(b)[k,n] + beta c; ld* is the row stride of a matrix as stored. */
static inline void multiply(const struct geometry *g, int op_a, int op_b, int m, int n, int k, real alpha,
                            const real *a, int64_t lda, const real *b, int64_t ldb, real beta, real *c, int64_t ldc)
{
	g->gemm(CblasRowMajor, op_a, op_b, m, n, k, alpha, a, (int)lda, b, (int)ldb, beta, c, (int)ldc);
}

/* Applies the soft cap to a tile of scores, where there is one. */
static inline void cap_scores(const struct geometry *g, real *scores, int queries, int keys)
{
	for (int i = 0; g->softcap > 0 && i < queries; i++)
#pragma omp simd
		for (int j = 0; j < keys; j++)
			scores[i * TILE_KEYS + j] = g->softcap * wlb_tanh(scores[i * TILE_KEYS + j] / g->softcap);
}

#endif

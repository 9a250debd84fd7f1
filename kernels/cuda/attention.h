/*
 * Attention of the CUDA device: causal inside each segment and within the window (kernels/ops.h), grouped-query,
 * softmax scale 1/sqrt(head_dim), forward and backward. Neither keeps scores: they are computed again from q, k and the
 * log-sum-exp (FlashAttention-2, Dao 2023). The same inputs give the same bits.
 */
#ifndef KERNELS_CUDA_ATTENTION_H
#define KERNELS_CUDA_ATTENTION_H

#include "kernels/attention_tiles.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A matrix whose rows are tokens. Rows are `stride` elements apart, so that it may be some columns of a wider one: q, k
 * and v of one product. The first row begins at a multiple of 16 bytes, and the stride is one. */
struct wlb_cuda_rows {
	void *data; /* device memory */
	int64_t stride;
};

/* All pointers are device memory. The elements of rows are bfloat16 or float32; sums and statistics are float32. */
struct wlb_cuda_attention {
	int is_bf16;  /* 1: bfloat16, products by tensor cores; 0: float32 */
	int heads;    /* of q */
	int kv_heads; /* divides heads */
	int head_dim; /* 64, 96, 128 or 256 */
	/* Made by wlb_attention_tiles_make of these segments with wlb_cuda_attention_tile_rows() rows. */
	const struct wlb_segment *segments;
	const struct wlb_query_tile *query_tiles;
	const struct wlb_key_tile *key_tiles; /* backward only */
	const int32_t *readers;               /* backward only */
	int query_tile_count;
	int key_tile_count;
	float softcap;  /* c: a scaled score s becomes c tanh(s / c); 0: it stays */
	int tile_rows;  /* that the lists were made with */
	int window;     /* keys that a query attends to at most; 0: no limit */
	int64_t q_rows; /* of q, out and their gradients: beyond them there is no memory */
	int64_t k_rows; /* of k, v and their gradients */

	struct wlb_cuda_rows q;    /* [rows, heads, head_dim] */
	struct wlb_cuda_rows k, v; /* [rows, kv_heads, head_dim] */
	struct wlb_cuda_rows out;  /* [rows, heads, head_dim] */
	float *lse;                /* [rows of q, heads], log-sum-exp of the scaled scores */

	/* backward only */
	struct wlb_cuda_rows d_out, d_q;
	struct wlb_cuda_rows d_k, d_v;
	float *delta; /* [rows of q, heads]: scratch */
};

/* Returns the rows of a tile for this element type and head_dim; 0 for a head_dim that this device lacks. */
int wlb_cuda_attention_tile_rows(int is_bf16, int head_dim);

/* Queues out and lse, which are overwritten in the rows of segments; other rows are unchanged. A query that attends to
 * no key gets out = 0 and lse = -infinity. Returns -1 with the reason if the arguments break a rule above; then nothing
 * is queued. Errors of CUDA are kept for synchronize(). */
int wlb_cuda_attention_forward(struct wlb_device *device, const struct wlb_cuda_attention *attention,
                               struct wlb_error *error);

/* Queues the gradients d_q, d_k and d_v of q, k and v, from d_out and what the forward pass had and made. They are
 * overwritten, not added to: d_q in the rows of segments, d_k and d_v in the rows that are in the key range of a
 * segment (0 where no query sees them). The keys' gradients are the sum over all segments that share them. Other rows
 * are unchanged. Errors as above. */
int wlb_cuda_attention_backward(struct wlb_device *device, const struct wlb_cuda_attention *attention,
                                struct wlb_error *error);

#ifdef __cplusplus
}
#endif

#endif

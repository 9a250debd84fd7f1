/*
 * Declares the memory of one rank's passes and the state that the parts of a pass share. Private to worker/model.
 *
 * n, h, q, kv and f as in transformer.h.
 */
#ifndef WORKER_MODEL_ACTIVATIONS_H
#define WORKER_MODEL_ACTIVATIONS_H

#include <stddef.h>

#include "worker/model/transformer.h"

/* Scratch memory that all slots share; not preserved between passes. */
struct wlb_scratch {
	/* tensor parallelism */
	void *gathered; /* [n, h] rows of all tensor-parallel ranks; NULL where tp is 1, as is the next */
	void *addend;   /* [n, h] this rank's addend of a sum over ranks */
	/* context parallelism; NULL without exchanges */
	void *kv_ranks; /* [key_ranks, n, 2 kv] keys and values of all ranks that exchange them, or their gradients */
	void *d_kv_all; /* [tokens or, if they are more, n rows of 2 kv] */
	/* of the micro-batch */
	void *angles[WLB_ANGLES_KINDS]; /* [n, rotary_dim], master; NULL where the model lacks that kind */
	/* of the MLP */
	void *activated; /* [n, f] the gated product of the MLP; in the backward pass first its gradient */
	/* gradients, named after the activations */
	void *d_norm;      /* [n / tp, h] */
	void *d_qkv;       /* [n, q + 2 kv] */
	void *d_attention; /* [n, q] */
	void *qk_products; /* as qk_squares */
	/* the last stage's; NULL on others */
	void *final_norm; /* [n / tp, h]; then the gradient of its input */
	void *final_rstd; /* [n / tp], master */
	/* head; NULL on a stage without it */
	void *logits;     /* [logit_rows, this rank's vocabulary] of a part of the rows; then their gradient */
	void *statistics; /* [tp, logit_rows, 3] of cross-entropy, master */
};

/* Rows [first, first + count) of a micro-batch, of which each tensor-parallel rank has an equal share: in its own rows
 * [first / tp, (first + count) / tp). */
struct wlb_tp_piece {
	int64_t first, count;
};

struct wlb_tp_pieces {
	int count;
	struct wlb_tp_piece piece[2];
};

/* A layer of a chunk, and its activations of a micro-batch. */
struct wlb_layer {
	const struct wlb_layer_tensors *tensors;
	const struct wlb_layer_activations *activations;
};

struct wlb_transformer {
	const struct wlb_parameters *parameters;
	struct wlb_device *device;
	const struct wlb_groups *groups;
	struct wlb_comm *tp;
	int tp_size;
	int key_ranks;     /* whose keys and values there is memory for */
	int has_exchanges; /* 1: micro-batches may have some */
	/* Of each piece the collectives under way between parts of a layer, which only worker/model/layer_parts.h uses.
	 */
	struct wlb_comm_request *rows[2], *sums[2];
	int has_begun; /* in the backward pass: `rows` are those of the layer that follows, or of the embedding */
	enum wlb_recompute recompute;
	int recompute_layers; /* FULL: of each chunk, its first layers; 0: all */
	double *frequencies;  /* [kinds of angles, rotated_pairs], of the rotary embeddings; device memory */
	int rotated_pairs;    /* of each head */
	double angles_scale[WLB_ANGLES_KINDS];
	int64_t max_rows;
	int64_t max_tokens;
	int64_t logit_rows;     /* the most rows of which there are logits at a time: of wlb_logit_rows */
	struct wlb_slot *slots; /* [slot_count] */
	int slot_count;
	int slot_layers; /* most layers of a chunk */
	int in_flight_count;
	struct wlb_layer_activations *layers;  /* [in_flight_count, slot_layers] */
	struct wlb_layer_activations **unused; /* [in_flight_count]: those that no slot has, the first unused_count */
	int unused_count;
	struct wlb_scratch scratch;
	struct wlb_comm_request *exchanges[WLB_EXCHANGES_MAX]; /* started, of the layer in progress */
	int shared_head;
	struct wlb_head_buffers head_buffers; /* NULL where the head is not shared */
	void *block;                          /* all device pointers above point into it */
	size_t bytes;                         /* of the block */
};

/* Gives the slot activations of layers, unless it has some: before its forward pass. They are used again as soon as the
 * device's queue is through its backward pass. Returns -1 where other slots have all of them. */
int wlb_slot_take_layers(struct wlb_transformer *t, struct wlb_slot *slot, struct wlb_error *error);

/* Takes them back: after its backward pass. */
void wlb_slot_give_layers(struct wlb_transformer *t, struct wlb_slot *slot);

/* Returns what layer `layer` of each chunk recomputes. */
enum wlb_recompute wlb_layer_recompute(const struct wlb_transformer *t, int layer);

/* Returns the bytes of `count` elements. */
static inline size_t wlb_bytes(enum wlb_dtype dtype, int64_t count)
{
	return (size_t)count * wlb_dtype_bytes(dtype);
}

/* Returns the address of element `index` of a buffer. */
static inline void *wlb_element(enum wlb_dtype dtype, void *buffer, int64_t index)
{
	return (char *)buffer + wlb_bytes(dtype, index);
}

/* Returns the width of this rank's keys, and of its values. */
static inline int64_t wlb_kv_width(const struct wlb_transformer *t)
{
	return t->parameters->kv_heads * t->parameters->shape.head_dim;
}

/* Returns the groups of a row of queries, and of keys, that are normed: their heads, one of all heads together, or 0.
 */
static inline int wlb_query_groups(const struct wlb_parameters *p)
{
	enum wlb_qk_norm norm = wlb_family(p->shape.family)->qk_norm;
	return norm == WLB_QK_NORM_HEAD ? p->heads : norm == WLB_QK_NORM_ALL;
}

static inline int wlb_key_groups(const struct wlb_parameters *p)
{
	enum wlb_qk_norm norm = wlb_family(p->shape.family)->qk_norm;
	return norm == WLB_QK_NORM_HEAD ? p->kv_heads : norm == WLB_QK_NORM_ALL;
}

/* Returns the elements of a rank's share of n rows of the residual stream. */
static inline int64_t wlb_share_elements(const struct wlb_transformer *t, int64_t n)
{
	return n / t->tp_size * t->parameters->shape.hidden_size;
}

/* Advances started communication: activations sent to other stages, gradients being summed. Without this call it would
 * not advance until the end of the pass. */
static inline void wlb_pass_progress(const struct wlb_transformer *t)
{
	wlb_groups_progress(t->groups);
}

/* Calls the watch, if there is one. */
static inline int wlb_layer_done(const struct wlb_backward_watch *watch, int chunk, int layer, struct wlb_error *error)
{
	return watch != NULL ? watch->layer_done(watch->context, chunk, layer, error) : 0;
}

#endif

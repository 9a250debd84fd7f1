/* The tensors, buckets and chunks of layers that one rank holds; parameters.h describes how they are cut. */
#ifndef WORKER_MODEL_PARAMETER_TABLE_H
#define WORKER_MODEL_PARAMETER_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/ops.h"
#include "libwlb/wlb.h"
#include "worker/model/tensor_block.h"

enum wlb_init {
	WLB_INIT_ONES,   /* norms */
	WLB_INIT_ZEROS,  /* biases, and norms that add 1 to their weight */
	WLB_INIT_NORMAL, /* normal, init_std */
	WLB_INIT_OUTPUT, /* normal, init_std / sqrt(2 layers), as Megatron-LM: matrices that add to the residual stream
	                  */
};

struct wlb_tensor {
	char name[64];                 /* "model.layers.0.self_attn.q_proj.weight" */
	struct wlb_tensor_block block; /* what this rank holds: rows are output features, columns input features */
	int owned;      /* 1 on one of the ranks that hold the same block, not counting the ranks of the data group: it
	                   represents the block in checkpoints and in the norm */
	size_t offset;  /* elements from the start of the flat buffers; a multiple of 16 but for the tensors that stand
	                   below another in one product: k and v below q (v below k where several ranks hold them), up
	                   below gate */
	size_t padding; /* elements after it, in its bucket, that are of no tensor */
	int bucket;
	int is_added_to; /* 1: its gradient has been added to since the step or the pass began (gradients.h) */
	enum wlb_init init;
};

/* The reduction of a bucket's gradients in addition to that over the data group. */
enum wlb_bucket_kind {
	WLB_BUCKET_MATRICES, /* nothing */
	WLB_BUCKET_NORMS,   /* whole on each rank: summed over tp, since each has the gradient of its rows or heads only
	                     */
	WLB_BUCKET_VECTORS, /* biases and norms that are cut as matrices are: nothing */
	WLB_BUCKET_KV,      /* k and v that several ranks hold: summed over kv */
	WLB_BUCKET_KV_VECTORS, /* their biases and norms: so are these */
	WLB_BUCKET_TIED, /* a tied embedding, or a head that all stages share: summed over the stages that hold it */
};

/* Norms and biases have no weight decay. */
static inline int wlb_bucket_decays(enum wlb_bucket_kind kind)
{
	return kind != WLB_BUCKET_NORMS && kind != WLB_BUCKET_VECTORS && kind != WLB_BUCKET_KV_VECTORS;
}

struct wlb_bucket {
	enum wlb_bucket_kind kind;
	size_t offset;   /* into the flat buffers */
	size_t elements; /* a multiple of 16 x shards: rank i of the data group owns the i-th of `shards` equal parts */
	int last;        /* the tensor at its end */
	size_t gradient_offset; /* into the buffer of gradients: `offset` with ZeRO stage 1 */
	/* 1, with ZeRO stage 2: its gradients are reduced after each backward pass, and lie until then in memory that
	 * other buckets use, too. */
	int is_passing;
	int owned; /* that of its tensors, which is the same for all */
	/* Its gradients are complete after this layer of this chunk in the chunk's last backward pass (is_passing: in
	 * each): 0 is the chunk's first layer, its number of layers the head, -1 the embedding. Chunks complete in
	 * descending order. */
	int chunk;
	int layer;
	/* Of its weights, not awaited yet: their gather, and without one their update; else NULL (gathered_weights.h)
	 */
	struct wlb_comm_request *gather;
	struct wlb_event *update;
};

/* Whether the gradients of a bucket are complete after this layer of this chunk. */
static inline int wlb_bucket_is_complete(const struct wlb_bucket *bucket, int chunk, int layer)
{
	return bucket->chunk > chunk || (bucket->chunk == chunk && bucket->layer >= layer);
}

/* Index into the table of tensors, for each tensor of a layer: they follow each other there in this order. Those that
 * the model's family lacks are -1. */
struct wlb_layer_tensors {
	int input_norm; /* of the input of attention */
	int q;
	int k;
	int v;
	int q_bias;
	int k_bias;
	int v_bias;
	int q_norm;
	int k_norm;
	int o;
	int attention_norm; /* of what attention gives */
	int post_norm;      /* of the input of the MLP */
	int mlp_norm;       /* of what the MLP gives */
	int gate;
	int up;
	int down;
	/* No indexes: whether the layer rotates its queries and keys, by which angles, and the keys that a query
	 * attends to at most. */
	int has_rope;
	enum wlb_angles angles;
	int window; /* 0: no limit */
};

/* Consecutive layers of a stage. */
struct wlb_chunk {
	int first_layer; /* in the model */
	int layers;
	int has_embedding;
	int has_head;                      /* or a share of its rows; the final norm is on the last stage alone */
	struct wlb_layer_tensors *tensors; /* [layers] */
};

struct wlb_parameters {
	struct wlb_model shape; /* of the whole model */
	struct wlb_device *device;
	/* this rank's part of every layer */
	int heads;
	int kv_heads;
	int64_t intermediate;
	int64_t vocab_start; /* of embedding and head */
	int64_t vocab;
	struct wlb_chunk *chunks; /* [chunk_count]: the plan's interleave */
	int chunk_count;
	struct wlb_tensor *tensors;
	int count;
	int embedding; /* -1 on a stage without it; so are the two below */
	int final_norm;
	int head;                   /* the index of the embedding where the two are tied and on one stage */
	struct wlb_bucket *buckets; /* in the order in which they become complete */
	int bucket_count;
	int shards;
	int micro_batches;        /* whose gradients are summed in a step */
	size_t elements;          /* of the weights, and of the gradients' sums, including padding, which is always 0 */
	size_t gradient_elements; /* of the buffer of gradients */
	void *weights;
	void *gradients;
};

#endif

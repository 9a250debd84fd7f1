/*
 * One pass of one rank over one micro-batch: forward through the layers of a chunk, backward through them. A layer is x
 * + attention(norm(x)), then x + mlp(norm(x)), as in the paper. The matrices are between the collectives of tensor
 * parallelism with sequence-parallel regions (Korthikanti et al. 2022), attention between those of context parallelism:
 * keys and values are gathered, their gradients reduce-scattered (Llama 3, Dubey et al. 2024).
 *
 * n = batch->rows; the residual stream has n / tp rows on a rank, everything between two collectives n.
 */
#ifndef WORKER_MODEL_TRANSFORMER_H
#define WORKER_MODEL_TRANSFORMER_H

#include "worker/model/micro_batch.h"
#include "worker/model/parameters.h"
#include "worker/parallel/groups.h"

/* The activations of one layer that its backward pass needs; h hidden, q and kv widths on this rank, f its part of the
 * intermediate size. Elements are of the device's type `compute` where nothing is said. */
struct wlb_layer_activations {
	enum wlb_recompute recompute; /* of this layer */
	void *input;                  /* [n / tp, h] the residual stream before the layer */
	/* The norms that the family has (libwlb's enum wlb_norms), else NULL. */
	void *norm;       /* [n / tp, h] the norm of `input` */
	void *rstd;       /* [n / tp], master, as are the next */
	void *given;      /* [n / tp, h] what attention gave, before its norm */
	void *given_rstd; /* [n / tp] */
	void *qkv;        /* [n, q + 2 kv] queries and keys after RoPE, then values */
	/* Of families that norm queries and keys, else NULL: both before their norms, [n, q + kv], and the sums of
	 * their squares, master, [n, groups] of the queries, then of the keys; wlb_query_groups() */
	void *raw_qk;
	void *qk_squares;
	void *kv_all;    /* [tokens, 2 kv] of all ranks of the documents, in document order; NULL without exchanges */
	void *attention; /* [n, q] */
	void *lse;       /* [n, heads], master */
	void *middle;    /* [n / tp, h] the residual stream after attention */
	void *post_norm; /* [n / tp, h] these four as those of attention, of the MLP */
	void *post_rstd;
	void *mlp_given;
	void *mlp_given_rstd;
	void *gate_up; /* [n, 2 f] */
};

/* The data of a chunk over a micro-batch, from the first message of its forward pass to the last of its backward pass.
 * `input` and `output` are sent over the pipeline: no other slot shares their memory. */
struct wlb_slot {
	void *input;  /* [n / tp, h] before the chunk */
	void *output; /* [n / tp, h] after it; then its gradient; then the gradient of `input` */
	/* On the last stage where the stages share the head, else NULL. Shares of it are sent, too. */
	void *normed;     /* [n / tp, h] the last norm of `output` */
	void *final_rstd; /* [n / tp], master */
	/* From the forward to the end of the backward pass, else NULL: [most layers of a chunk]. Recomputed activations
	 * are in memory that all slots share. */
	struct wlb_layer_activations *layers;
};

struct wlb_transformer;

/* `in_flight`: the most chunks whose forward pass is begun and whose backward pass is not done; there are activations
 * of layers for so many. `slots`, at least as many: chunks of which a pass or a message uses the input or the output.
 * Buffers for micro-batches of up to max_rows rows (max_tokens of the documents, on all their ranks) are allocated
 * here, once; a pass allocates nothing. Recomputation is that of `split`: NONE keeps everything above; SELECTIVE
 * computes norm and post_norm again and gathers kv_all again (attention's scores and the gated product are always
 * computed again); FULL keeps `input` alone of the first recompute_layers layers of each chunk (0: of all), and the
 * others are as with SELECTIVE. The caller owns parameters and groups, which must outlive it. Returns NULL with the
 * number of bytes that could not be allocated. */
struct wlb_transformer *wlb_transformer_new(const struct wlb_parameters *parameters, const struct wlb_groups *groups,
                                            const struct wlb_plan *split, int in_flight, int slots, int64_t max_rows,
                                            int64_t max_tokens, struct wlb_error *error);
void wlb_transformer_free(struct wlb_transformer *transformer); /* NULL allowed */

struct wlb_slot *wlb_transformer_slot(struct wlb_transformer *transformer, int slot);

/* Returns 0 when the device has every operation that training uses, -1 with the name of the first missing one
 * otherwise. */
int wlb_transformer_check_device(const struct wlb_device *device, struct wlb_error *error);

/* Forward through a chunk: reads slot->input, or batch->ids on the chunk that has the embedding, and writes
 * slot->output. The batch must hold at least one token. It also advances the calls started on the edges of the pipeline
 * and on data, as wlb_backward does. Returns -1 when a collective failed. */
int wlb_forward(struct wlb_transformer *transformer, int chunk, struct wlb_slot *slot,
                const struct wlb_micro_batch *batch, struct wlb_error *error);

/* Called after each layer's backward pass; numbered as wlb_bucket.layer. */
struct wlb_backward_watch {
	int (*layer_done)(void *context, int chunk, int layer, struct wlb_error *error);
	void *context;
};

/* On the chunk that has the head, before wlb_backward: final norm, head, loss, and their backward pass, a part of the
 * rows at a time, so that the logits of all rows never exist. Replaces slot->output by its gradient, for the loss times
 * `scale`. Adds the summed cross-entropy of the micro-batch's own rows to *loss_sum (device), on one of the
 * tensor-parallel ranks only. */
int wlb_head_loss(struct wlb_transformer *transformer, int chunk, struct wlb_slot *slot,
                  const struct wlb_micro_batch *batch, double *loss_sum, double scale,
                  const struct wlb_backward_watch *watch, struct wlb_error *error);

/* Instead of wlb_head_loss where no backward pass follows: the loss alone, without a gradient. Also where the stages
 * share the head, on the last one. */
int wlb_head_evaluate(struct wlb_transformer *transformer, struct wlb_slot *slot, const struct wlb_micro_batch *batch,
                      double *loss_sum, struct wlb_error *error);
/* Ends a forward pass that no backward pass follows: its activations can be used again. */
void wlb_forward_end(struct wlb_transformer *transformer, struct wlb_slot *slot);

/*
 * The head where the stages share it (libwlb's wlb_plan.shared_head). The product with the vocabulary, the loss and
 * their gradients are the work of 2.4 layers in a model of 8B parameters and 128K words, and would otherwise make the
 * last stage the slowest. The last stage normalises its rows and sends each other stage its part of them; every stage
 * computes product, loss and gradients of its part; the gradients of the normed rows go back to the last stage. When
 * each stage runs its share is decided in libwlb/layout/pipeline.c.
 *
 * Rows are divided, and not the vocabulary, as Yeung et al. (MLSys 2025, "Balancing Pipeline Parallelism with
 * Vocabulary Parallelism") do, where each stage has V / pp rows of the weight. Then every stage needs all rows, and
 * every row needs statistics of all stages before its gradient: all stages meet in the middle of the head, or its
 * logits are kept until the statistics have arrived. The gradients of all stages are then summed for each micro-batch,
 * which is pp - 1 times the bytes in each direction, and a barrier. By rows each loss is computed in one place, its
 * tensor-parallel group; a part is one message there and one back; and the arithmetic of a row is the same.
 *
 * Every stage then holds the head's weight, gradient and moments, which the first stage has already where the embedding
 * is tied. The gradients of all copies are summed once a step, as those of a tied embedding are. The activations of one
 * more micro-batch are held, with the last stage's normed rows. A checkpoint has one copy, the last stage's or the
 * embedding.
 */

/* Rows [first, first + count) of the n / tp rows of each tensor-parallel rank. */
struct wlb_head_rows {
	int64_t first, count;
};

/* Returns the part of a stage: parts are as equal as they can be, and follow each other. May be empty. */
struct wlb_head_rows wlb_head_rows_of(const struct wlb_transformer *transformer, const struct wlb_micro_batch *batch,
                                      int stage);

/* Returns how many of these rows, on all tensor-parallel ranks together, have a target. Reads targets_host. */
int64_t wlb_head_tokens(const struct wlb_transformer *transformer, const struct wlb_micro_batch *batch,
                        struct wlb_head_rows rows);

/* Buffers that are sent over the pipeline or received: nothing else shares their memory. On the last stage d_rows are
 * the gradients of all normed rows, [n / tp, h], and rows is NULL; on others both are of the stage's part. */
struct wlb_head_buffers {
	void *rows, *d_rows;
};
struct wlb_head_buffers wlb_transformer_head_buffers(const struct wlb_transformer *transformer);

/* Loss and gradients of a part that is not empty: x[count, h] are this rank's normed rows, d_x[count, h] receives their
 * gradient, for the loss times `scale`, and must not overlap x. Loss and errors as of wlb_head_loss. */
int wlb_head_share(struct wlb_transformer *transformer, struct wlb_head_rows rows, void *x, void *d_x,
                   const struct wlb_micro_batch *batch, double *loss_sum, double scale, struct wlb_error *error);

/* On the last stage, in this order: slot->normed from slot->output; the gradient of the stage's own part in d_rows of
 * the buffers; and, when all of d_rows is there, slot->output replaced by its gradient. */
int wlb_head_norm(struct wlb_transformer *transformer, struct wlb_slot *slot, const struct wlb_micro_batch *batch,
                  struct wlb_error *error);
int wlb_head_own_share(struct wlb_transformer *transformer, struct wlb_slot *slot, const struct wlb_micro_batch *batch,
                       double *loss_sum, double scale, struct wlb_error *error);
int wlb_head_norm_backward(struct wlb_transformer *transformer, int chunk, struct wlb_slot *slot,
                           const struct wlb_micro_batch *batch, const struct wlb_backward_watch *watch,
                           struct wlb_error *error);

/* Backward through a chunk: replaces the gradient of the chunk's output in slot->output by that of its input (on the
 * chunk that has the embedding its contents are then undefined). Adds to the gradients of the parameters. watch may be
 * NULL. */
int wlb_backward(struct wlb_transformer *transformer, int chunk, struct wlb_slot *slot,
                 const struct wlb_micro_batch *batch, const struct wlb_backward_watch *watch, struct wlb_error *error);

/* Computes the logits of a whole micro-batch on a rank that holds the whole model (tp, cp and pp 1): out_host[rows,
 * vocab], in the element type of the device. For comparison with other programs. */
int wlb_logits(struct wlb_transformer *transformer, const struct wlb_micro_batch *batch, void *out_host,
               struct wlb_error *error);

#endif

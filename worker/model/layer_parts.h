/*
 * A layer in a pass over a micro-batch, and its attention and MLP, which worker/model/layer.c puts together: it tells
 * the order of operations and collectives; internal. The functions that return an int return -1 where a collective
 * failed.
 */
#ifndef WORKER_MODEL_LAYER_PARTS_H
#define WORKER_MODEL_LAYER_PARTS_H

#include "worker/model/activations.h"
#include "worker/model/linear.h"
#include "worker/model/tensor_parallel.h"

/* A layer in a pass over a micro-batch. */
struct wlb_layer_pass {
	struct wlb_transformer *t;
	struct wlb_device *device;
	const struct wlb_parameters *p;
	const struct wlb_layer_tensors *w;
	const struct wlb_layer_activations *a;
	const struct wlb_scratch *s;
	const struct wlb_micro_batch *batch;
	int64_t n; /* rows */
	struct wlb_tp_pieces pieces;
	int64_t hidden, q_width, kv_width, qkv_width;
	struct wlb_matrix o, gate_up, down;
	int tp_is_1;
	int keys_first; /* keys and values are gathered while the queries are computed */
	int norms_before, norms_after;
	int gelu_gate;
	int feeds_embedding; /* the gradient of the layer's input is that of the embedding's rows, as it is */
};

static inline int wlb_last_piece(const struct wlb_layer_pass *l)
{
	return l->pieces.count - 1;
}

static inline int64_t wlb_piece_rows(const struct wlb_layer_pass *l, int piece)
{
	return l->pieces.piece[piece].count;
}

/* -- layer_parts.c -- */
/* Owns nothing: valid as long as its arguments. */
struct wlb_layer_pass wlb_layer_pass_of(struct wlb_transformer *t, const struct wlb_layer *layer,
                                        const struct wlb_micro_batch *batch);

/* Returns the rows of a piece in x[n, width]. */
void *wlb_piece_of(const struct wlb_layer_pass *l, const void *x, int64_t width, int piece);

/* Starts to sum a piece of what the last product gave. */
int wlb_piece_sum_start(const struct wlb_layer_pass *l, void *sum, const void *addend, int piece,
                        struct wlb_error *error);

/* Starts to gather all of x, of which the gradient of a matrix is; and awaits it. */
int wlb_layer_gather_start(const struct wlb_layer_pass *l, void *all, const void *x,
                           struct wlb_comm_request *requests[2], struct wlb_error *error);
int wlb_layer_gather_await(struct wlb_comm_request *const requests[2], struct wlb_error *error);

/* What attention and MLP have as input on this rank: a norm, or where norms come after alone, the residual stream. */
void *wlb_attention_input(const struct wlb_layer_pass *l);
void *wlb_mlp_input(const struct wlb_layer_pass *l);

/* Of a piece: out = norm(sum), sum = x + residual. */
void wlb_piece_norm(const struct wlb_layer_pass *l, void *out, void *rstd, void *sum, const void *x,
                    const void *residual, int tensor, int piece);

/* Of a piece, y += x. */
void wlb_piece_add(const struct wlb_layer_pass *l, void *y, const void *x, int piece);

/* Of a piece, out = x + norm(given): where the norms come after. */
void wlb_piece_add_norm(const struct wlb_layer_pass *l, void *out, const void *x, void *rstd, const void *given,
                        int tensor, int piece);

/* The gradient of what attention or MLP gave, `given`, where that of its result is d_residual. */
void *wlb_given_gradient(const struct wlb_layer_pass *l, void *d_residual);

/* Starts to gather a piece of that of attention, and of the MLP. */
int wlb_attention_gradient_start(const struct wlb_layer_pass *l, void *d_residual, int piece, struct wlb_error *error);
int wlb_mlp_gradient_start(const struct wlb_layer_pass *l, void *d_residual, int piece, struct wlb_error *error);

/* Starts to gather a piece of that of the embedding's rows. */
int wlb_embedding_gradient_start(const struct wlb_layer_pass *l, const void *d_residual, int piece,
                                 struct wlb_error *error);

/* Awaits a piece of the gradient of the input of attention or MLP, in d_norm, and adds that of `x` to d_residual. */
int wlb_input_backward(const struct wlb_layer_pass *l, void *d_residual, const void *x, const void *rstd, int tensor,
                       int piece, struct wlb_error *error);

/* The input of attention, where it is a norm. */
void wlb_norm_input(const struct wlb_layer_pass *l, int piece);

/* Of a piece, awaits what the MLP gave, and makes the layer's output of it. */
int wlb_piece_output(const struct wlb_layer_pass *l, void *out, int piece, struct wlb_error *error);

/* Starts to gather a piece of attention's input: the output of the layer `before`, unless that is NULL, is awaited. */
int wlb_attention_input_start(const struct wlb_layer_pass *l, const struct wlb_layer_pass *before, int piece,
                              struct wlb_error *error);

/* Awaits a piece of what attention gave, and starts to gather one of the MLP's input. */
int wlb_mlp_input_start(const struct wlb_layer_pass *l, int piece, struct wlb_error *error);

/* -- attention.c -- */
/* Attention up to its output: the sum of the last piece is left to await, and of a piece before it the rows of the
 * MLP's input. Of the layer `before` the sum of the last piece is under way, and of a piece before it the rows of this
 * layer's input; NULL: the input is there. */
int wlb_attention_forward(const struct wlb_layer_pass *l, const struct wlb_layer_pass *before, struct wlb_error *error);

/* d_residual: the gradient of `middle` in, of `input` out. */
int wlb_attention_backward(const struct wlb_layer_pass *l, const struct wlb_layer_pass *next, void *d_residual,
                           struct wlb_error *error);

/* -- mlp.c -- */
/* Of a piece, the MLP up to gate_up. The input of the last of two is made when the first one's next product can run
 * beside its gather. */
int wlb_mlp_gates_and_ups(const struct wlb_layer_pass *l, int piece, struct wlb_error *error);

/* Of a piece, silu(gate) * up */
void wlb_mlp_activate(const struct wlb_layer_pass *l, int piece);

/* Of a piece, starts given = down(silu(gate) * up), with `middle` where no norm comes after and tp is 1. */
int wlb_mlp_down(const struct wlb_layer_pass *l, void *given, int piece, struct wlb_error *error);

/* The sum of the last piece is left to await (wlb_piece_output), and of a piece before it the rows of the input of
 * `next`, unless that is NULL. */
int wlb_mlp_forward(const struct wlb_layer_pass *l, const struct wlb_layer_pass *next, void *out,
                    struct wlb_error *error);

/* d_residual: the gradient of the layer's output in, of `middle` out. */
int wlb_mlp_backward(const struct wlb_layer_pass *l, void *d_residual, struct wlb_error *error);

#endif

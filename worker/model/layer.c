/*
 * A layer of Llama (Touvron et al. 2023), with the collectives of tensor parallelism with sequence-parallel regions
 * (Korthikanti et al. 2022) and of context parallelism (Llama 3, Dubey et al. 2024):
 *
 *   middle = input + O attention(rope(Q x), rope(K x), V x)    x = norm(input)
 *   out    = middle + down(silu(gate y) * up y)                y = norm(middle)
 *
 * or, in families whose norms come after (OLMo 2, 2025),
 *
 *   middle = input + norm(O attention(rope(Q x), rope(K x), V x))    x = input
 *   out    = middle + norm(down(silu(gate y) * up y))                y = middle
 *
 * or both before and after (Gemma 2, 2024, which has GELU in the place of SiLU):
 *
 *   middle = input + norm(O attention(rope(Q x), rope(K x), V x))    x = norm(input)
 *   out    = middle + norm(down(gelu(gate y) * up y))                y = norm(middle)
 *
 * Biases and norms of queries and keys come before their rotation (qkv_vectors.h).
 *
 * Each half stands here forward, then backward. Q, K and V are one product, as are gate and up. A residual is added by
 * the product before it; where tp is above 1 the ranks' products are summed first, and `input` is added by the norm
 * that follows. Progress is made with started communication between the halves.
 *
 * A collective that is started overlaps with the operations between its start and its wait, where the transport
 * advances by itself. In the backward pass the gradient of a matrix is computed while the gradient of its input is
 * summed, and the rows that only the matrix's gradient needs are gathered while the input's gradient is computed
 * (Korthikanti et al. 2022). In the forward pass the operation after a collective needs its result, but for keys and
 * values: they are computed before the queries, and are gathered while the queries are. That makes two products of one,
 * so only where the transport advances by itself.
 *
 * Where the rows are in two pieces (tensor_parallel.h), A and B, every product from or to rows of all ranks is computed
 * of A, then of B, but for the gradients of matrices, which need all rows. Collectives run beside products:
 *   forward   the sum of down B of the layer before beside Q K V of A; x B beside attention and O of A; the sum of O A
 *             beside Q K V of B; y A beside attention and O of B; the sum of O B beside gate and up of A; y B beside
 *             down of A; the sum of down A beside gate and up of B; the next layer's x A beside down of B
 *   backward  of the gradient that attention or the MLP begins with, B beside the product of A; of the sum of the
 *             gradient of its input, A beside the product of B; the sum of B, and A of the gradient that the part
 *             before begins with, beside the gradient of the matrix
 * Attention of A needs keys and values of A alone. Where other ranks have some it begins behind Q K V of B: then x B
 * has nothing beside it, the sum of O A runs beside attention of B, and y A beside O of B.
 *
 * Tensor-parallel ranks have the same documents. Of these the order of a layer's collectives depends only in the
 * exchanges of keys and values, of which there may be none or several, and it is the same on all ranks of each
 * (context_parallel.h). A and B are one call each; rows in one piece have the calls of B alone.
 *   forward   tp: x A (in the layer before, but of the first); where their norm is of all heads, the squares of
 *             queries and keys of A; x B (of the first layer, behind x A); the squares of B; the sum of O A; y A; the
 *             sum of O B; y B; the sum of down A; the next layer's x A; the sum of down B. Where keys and values are
 *             exchanged: the squares of keys of B; cp: keys and values; tp: the squares of queries of B (with those
 *             of keys, where all are one product), and then the sum of O A
 *   backward  what FULL computes again, as forward; tp: the gradient of the output A, B (in the layer after, but of
 *             the last, or before FULL); y A, B; the sum of that of y A, B; the gradient of middle A, B; cp: keys and
 *             values, where SELECTIVE gathers them again; tp: x A, B; cp: the sum of those of keys and values; tp: the
 *             products of the norms of all heads; the sum of the gradient of x A, B; the gradient of the output of the
 *             layer before, or of the embedding, A, B
 */
#include "worker/model/layer.h"

#include "worker/model/layer_parts.h"

/* FULL computes what the backward pass needs of the layer again before it: all of attention, and the MLP up to gate_up,
 * or where a norm comes after, up to that norm. */
static int recompute_layer(const struct wlb_layer_pass *l, struct wlb_error *error)
{
	const struct wlb_layer_activations *a = l->a;
	int last = wlb_last_piece(l);
	if (wlb_attention_forward(l, NULL, error) < 0)
		return -1;
	for (int i = 0; i <= last; i++) {
		if (wlb_mlp_gates_and_ups(l, i, error) < 0)
			return -1;
		if (!l->norms_after)
			continue;
		wlb_mlp_activate(l, i);
		if (wlb_mlp_down(l, a->mlp_given, i, error) < 0)
			return -1;
	}
	/* Its statistic alone is needed: the norm itself goes where nothing is kept. */
	for (int i = 0; l->norms_after && i <= last; i++) {
		if (wlb_comm_wait(l->t->sums[i], error) < 0)
			return -1;
		wlb_piece_norm(l, l->s->d_norm, a->mlp_given_rstd, NULL, a->mlp_given, NULL, l->w->mlp_norm, i);
	}
	return 0;
}

int wlb_layer_forward(struct wlb_transformer *t, const struct wlb_layer *layer, const struct wlb_layer *before,
                      const struct wlb_layer *next, void *out, const struct wlb_micro_batch *batch,
                      struct wlb_error *error)
{
	const struct wlb_layer_pass l = wlb_layer_pass_of(t, layer, batch),
				    given = before != NULL ? wlb_layer_pass_of(t, before, batch) : l,
				    following = next != NULL ? wlb_layer_pass_of(t, next, batch) : l;
	if (wlb_attention_forward(&l, before != NULL ? &given : NULL, error) < 0)
		return -1;
	wlb_pass_progress(t);
	if (wlb_mlp_forward(&l, next != NULL ? &following : NULL, out, error) < 0 ||
	    (next == NULL && wlb_piece_output(&l, out, wlb_last_piece(&l), error) < 0))
		return -1;
	wlb_pass_progress(t);
	return 0;
}

int wlb_layer_backward(struct wlb_transformer *t, const struct wlb_layer *layer, const struct wlb_layer *next,
                       void *d_residual, const struct wlb_micro_batch *batch, struct wlb_error *error)
{
	/* What computes a whole layer again uses the buffers of what would be under way. */
	int begins = next != NULL && next->activations->recompute != WLB_RECOMPUTE_FULL;
	const struct wlb_layer_pass l = wlb_layer_pass_of(t, layer, batch),
				    following = begins ? wlb_layer_pass_of(t, next, batch) : l;
	if (l.a->recompute == WLB_RECOMPUTE_FULL && recompute_layer(&l, error) < 0)
		return -1;
	for (int i = 0; !t->has_begun && i <= wlb_last_piece(&l); i++)
		if (wlb_mlp_gradient_start(&l, d_residual, i, error) < 0)
			return -1;
	if (wlb_mlp_backward(&l, d_residual, error) < 0)
		return -1;
	wlb_pass_progress(t);
	if (wlb_attention_backward(&l, begins ? &following : NULL, d_residual, error) < 0)
		return -1;
	wlb_pass_progress(t);
	t->has_begun = begins || l.feeds_embedding;
	return 0;
}

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
 *   forward   x B beside Q K V of A; the sum of O A beside O of B; the sum of O B beside gate and up of A; y B beside
 *             down of A; the sum of down A beside gate and up of B; the next layer's x A beside down of B
 *   backward  of the gradient that attention or the MLP begins with, B beside the product of A; of the sum of the
 *             gradient of its input, A beside the product of B; the sum of B, and A of the gradient that the part
 *             before begins with, beside the gradient of the matrix
 * Of each layer y A and the sum of down B have nothing beside them.
 *
 * Tensor-parallel ranks have the same documents. Of these the order of a layer's collectives depends only in the
 * exchanges of keys and values, of which there may be none or several, and it is the same on all ranks of each
 * (context_parallel.h). A and B are one call each; rows in one piece have the calls of B alone.
 *   forward   tp: x A, B (in the layer before, but of the first); the squares of keys, where their norm is of all
 *             heads; cp: keys and values; tp: the squares of queries (with those of keys, where all are one product);
 *             the sum of O A; y A; the sum of O B; y B; the sum of down A; the next layer's x A; the sum of down B;
 *             the next layer's x B
 *   backward  what FULL computes again, as forward; tp: the gradient of the output A, B (in the layer after, but of
 *             the last, or before FULL); y A, B; the sum of that of y A, B; the gradient of middle A, B; cp: keys and
 *             values, where SELECTIVE gathers them again; tp: x A, B; cp: the sum of those of keys and values; tp: the
 *             products of the norms of all heads; the sum of the gradient of x A, B; the gradient of the output of the
 *             layer before A, B
 */
#include "worker/model/layer.h"

#include "worker/model/context_parallel.h"
#include "worker/model/linear.h"
#include "worker/model/norm.h"
#include "worker/model/qkv_vectors.h"
#include "worker/model/tensor_parallel.h"

/* A product whose result is the columns of qkv from `column` on. */
struct projection {
	struct wlb_matrix w;
	int64_t column;
};

/* A layer in a pass over a micro-batch. */
struct layer {
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
};

static struct layer layer_of(struct wlb_transformer *t, const struct wlb_layer *layer,
                             const struct wlb_micro_batch *batch)
{
	const struct wlb_layer_tensors *w = layer->tensors;
	const struct wlb_parameters *p = t->parameters;
	int64_t q_width = p->heads * p->shape.head_dim, kv_width = wlb_kv_width(t);
	return (struct layer){
		.t = t,
		.device = t->device,
		.p = p,
		.w = w,
		.a = layer->activations,
		.s = &t->scratch,
		.batch = batch,
		.n = batch->rows,
		.pieces = wlb_tp_pieces_of(t, batch->rows),
		.hidden = p->shape.hidden_size,
		.q_width = q_width,
		.kv_width = kv_width,
		.qkv_width = q_width + 2 * kv_width,
		.o = wlb_matrix_of(p, w->o, w->o),
		.gate_up = wlb_matrix_of(p, w->gate, w->up),
		.down = wlb_matrix_of(p, w->down, w->down),
		.tp_is_1 = t->tp_size == 1,
		.keys_first = batch->exchange_count > 0 && !wlb_comm_blocks_host(t->groups->data),
		.norms_before = w->input_norm >= 0,
		.norms_after = w->attention_norm >= 0,
		.gelu_gate = wlb_family(p->shape.family)->gelu_gate,
	};
}

static int last_piece(const struct layer *l)
{
	return l->pieces.count - 1;
}

static int64_t piece_rows(const struct layer *l, int piece)
{
	return l->pieces.piece[piece].count;
}

/* Returns the rows of a piece in x[n, width]. */
static void *rows_of(const struct layer *l, const void *x, int64_t width, int piece)
{
	return wlb_element(l->device->compute, (void *)x, l->pieces.piece[piece].first * width);
}

/* Returns this rank's share of a piece in x[n / tp, h], and in rstd[n / tp]; NULL stays NULL. */
static void *share_of(const struct layer *l, const void *x, int piece)
{
	int64_t first = l->pieces.piece[piece].first / l->t->tp_size;
	return x != NULL ? wlb_element(l->device->compute, (void *)x, first * l->hidden) : NULL;
}

static void *rstd_of(const struct layer *l, const void *rstd, int piece)
{
	return wlb_element(l->device->master, (void *)rstd, l->pieces.piece[piece].first / l->t->tp_size);
}

static int64_t share_elements(const struct layer *l, int piece)
{
	return wlb_share_elements(l->t, piece_rows(l, piece));
}

/* Starts to gather a piece of x, of which the next product is. */
static int gather_start(const struct layer *l, void *all, const void *x, int piece, struct wlb_error *error)
{
	return wlb_tp_all_gather_start(l->t, all, x, l->pieces.piece[piece], &l->t->rows[piece], error);
}

/* Starts to sum a piece of what the last product gave. */
static int sum_start(const struct layer *l, void *sum, const void *addend, int piece, struct wlb_error *error)
{
	return wlb_tp_reduce_scatter_start(l->t, sum, addend, l->pieces.piece[piece], &l->t->sums[piece], error);
}

/* Starts to gather all of x, of which the gradient of a matrix is. */
static int gather_all_start(const struct layer *l, void *all, const void *x, struct wlb_comm_request *requests[2],
                            struct wlb_error *error)
{
	requests[1] = NULL;
	for (int i = 0; i <= last_piece(l); i++)
		if (wlb_tp_all_gather_start(l->t, all, x, l->pieces.piece[i], &requests[i], error) < 0)
			return -1;
	return 0;
}

static int await_all(struct wlb_comm_request *const requests[2], struct wlb_error *error)
{
	return wlb_comm_wait(requests[0], error) < 0 || wlb_comm_wait(requests[1], error) < 0 ? -1 : 0;
}

/* The products of these parts of [Q K V]: one where they lie together and all are wanted. Keys and values that several
 * tensor-parallel ranks hold are in a bucket of their own. Returns how many. */
static int list_projections(const struct layer *l, enum wlb_qkv parts, struct projection list[2])
{
	const struct wlb_parameters *p = l->p;
	const struct wlb_layer_tensors *w = l->w;
	int count = 0;
	if (parts == WLB_QKV && p->tensors[w->q].bucket == p->tensors[w->k].bucket) {
		list[0] = (struct projection){wlb_matrix_of(p, w->q, w->v), 0};
		return 1;
	}
	if (parts & WLB_QUERIES)
		list[count++] = (struct projection){wlb_matrix_of(p, w->q, w->q), 0};
	if (parts & WLB_KEYS_AND_VALUES)
		list[count++] = (struct projection){wlb_matrix_of(p, w->k, w->v), l->q_width};
	return count;
}

/* Of a piece, these parts of qkv = x [Q K V]^T */
static void project(const struct layer *l, const void *x, enum wlb_qkv parts, int piece)
{
	struct projection list[2];
	int count = list_projections(l, parts, list);
	void *qkv = rows_of(l, l->a->qkv, l->qkv_width, piece);
	for (int i = 0; i < count; i++)
		wlb_linear(l->device, wlb_element(l->device->compute, qkv, list[i].column), l->qkv_width,
		           rows_of(l, x, l->hidden, piece), &list[i].w, NULL, piece_rows(l, piece));
}

/* Of a piece, d_x = d_qkv [Q K V] */
static void project_d_x(const struct layer *l, void *d_x, int piece)
{
	struct projection list[2];
	int count = list_projections(l, WLB_QKV, list);
	void *d_qkv = rows_of(l, l->s->d_qkv, l->qkv_width, piece);
	for (int i = 0; i < count; i++)
		wlb_linear_d_x(l->device, rows_of(l, d_x, l->hidden, piece), i > 0,
		               wlb_element(l->device->compute, d_qkv, list[i].column), l->qkv_width, &list[i].w,
		               piece_rows(l, piece));
}

/* Adds d_qkv^T x to the gradient of [Q K V]. */
static void project_d_w(const struct layer *l, const void *x)
{
	struct projection list[2];
	int count = list_projections(l, WLB_QKV, list);
	for (int i = 0; i < count; i++)
		wlb_linear_d_w(l->device, wlb_element(l->device->compute, l->s->d_qkv, list[i].column), l->qkv_width, x,
		               &list[i].w, l->n);
}

/* Rotates queries, keys, or both, which are neighbours; direction -1 rotates their gradients back. */
static void rope(const struct layer *l, void *qkv, enum wlb_qkv parts, int direction)
{
	int with_queries = parts & WLB_QUERIES, with_keys = parts & WLB_KEYS_AND_VALUES;
	if (l->w->has_rope)
		l->device->ops->rope(l->device, wlb_element(l->device->compute, qkv, with_queries ? 0 : l->q_width),
		                     l->qkv_width, l->s->angles[l->w->angles], l->n,
		                     (with_queries ? l->p->heads : 0) + (with_keys ? l->p->kv_heads : 0),
		                     (int)l->p->shape.head_dim, l->t->rotated_pairs, direction);
}

/* The keys and values of a token, or their gradients, lie side by side: in qkv with its queries, or in kv_all, the rows
 * of all context-parallel ranks. */
struct keys {
	void *k, *v;
	int64_t stride, rows;
};

static struct keys keys_in(const struct layer *l, void *kv, int64_t stride, int64_t rows)
{
	return (struct keys){kv, wlb_element(l->device->compute, kv, l->kv_width), stride, rows};
}

static struct keys own_keys(const struct layer *l, void *qkv)
{
	return keys_in(l, wlb_element(l->device->compute, qkv, l->q_width), l->qkv_width, l->n);
}

/* The keys that attention reads: those of all ranks of its documents, or this rank's own where no other has a part. */
static struct keys all_keys(const struct layer *l, void *qkv, void *kv_all)
{
	return l->batch->exchange_count == 0 ? own_keys(l, qkv) : keys_in(l, kv_all, 2 * l->kv_width, l->batch->tokens);
}

static struct wlb_attention_shape attention_shape(const struct layer *l, const struct keys *keys)
{
	return (struct wlb_attention_shape){
		.q_tokens = l->n,
		.k_tokens = keys->rows,
		.heads = l->p->heads,
		.kv_heads = l->p->kv_heads,
		.head_dim = (int)l->p->shape.head_dim,
		.q_stride = l->qkv_width,
		.kv_stride = keys->stride,
		.out_stride = l->q_width,
		.window = l->w->window,
		.softcap = l->p->shape.attn_logit_softcapping,
	};
}

/* Zeroes the rows of x[n, width] that hold no token: no segment covers them, and values of uninitialized memory must
 * not reach other rows. */
static void clear_padding(const struct layer *l, enum wlb_dtype dtype, void *x, int64_t width)
{
	int64_t first = l->batch->own_rows;
	l->device->ops->zero(l->device, wlb_element(dtype, x, first * width), wlb_bytes(dtype, (l->n - first) * width));
}

static void attend(const struct layer *l)
{
	const struct wlb_layer_activations *a = l->a;
	const struct keys keys = all_keys(l, a->qkv, a->kv_all);
	const struct wlb_attention_shape shape = attention_shape(l, &keys);
	clear_padding(l, l->device->compute, a->attention, l->q_width);
	clear_padding(l, l->device->master, a->lse, shape.heads);
	l->device->ops->attention_forward(l->device, a->attention, a->lse, a->qkv, keys.k, keys.v, &l->batch->segments,
	                                  &shape);
}

/* From d_attention to d_qkv, and to d_kv_all where keys are exchanged. */
static void attend_backward(const struct layer *l)
{
	const struct wlb_layer_activations *a = l->a;
	const struct wlb_scratch *s = l->s;
	const struct keys keys = all_keys(l, a->qkv, a->kv_all), d = all_keys(l, s->d_qkv, s->d_kv_all);
	const struct wlb_attention_shape shape = attention_shape(l, &keys);
	clear_padding(l, l->device->compute, s->d_qkv, l->qkv_width);
	if (l->batch->exchange_count > 0) /* this rank's queries do not see all keys */
		l->device->ops->zero(l->device, s->d_kv_all, wlb_bytes(l->device->compute, d.rows * d.stride));
	l->device->ops->attention_backward(l->device, s->d_qkv, d.k, d.v, s->d_attention, a->qkv, keys.k, keys.v,
	                                   a->attention, a->lse, &l->batch->segments, &shape);
}

/* Starts to gather the keys and values of all ranks of the documents. */
static int gather_keys_start(const struct layer *l, struct wlb_error *error)
{
	const struct keys own = own_keys(l, l->a->qkv);
	return wlb_cp_all_gather_start(l->t, own.k, own.stride, l->batch, error);
}

static int gather_keys_await(const struct layer *l, struct wlb_error *error)
{
	return wlb_cp_all_gather_await(l->t, l->a->kv_all, l->batch, error);
}

/* Biases, norms and rotation of these parts of qkv. */
static int finish_parts(const struct layer *l, enum wlb_qkv parts, struct wlb_error *error)
{
	if (wlb_qkv_vectors(l->t, l->w, l->a, parts, l->n, error) < 0)
		return -1;
	rope(l, l->a->qkv, parts, +1);
	return 0;
}

/* qkv of the rows of x, which are under way, and the keys and values of all ranks of the documents. */
static int queries_and_keys(const struct layer *l, const void *x, struct wlb_error *error)
{
	enum wlb_qkv first = l->keys_first ? WLB_KEYS_AND_VALUES : WLB_QKV;
	for (int i = 0; i <= last_piece(l); i++) {
		if (wlb_comm_wait(l->t->rows[i], error) < 0)
			return -1;
		project(l, x, i < last_piece(l) ? WLB_QKV : first, i);
	}
	if (finish_parts(l, first, error) < 0 || gather_keys_start(l, error) < 0)
		return -1;
	if (l->keys_first) {
		project(l, x, WLB_QUERIES, last_piece(l));
		if (finish_parts(l, WLB_QUERIES, error) < 0)
			return -1;
	}
	return gather_keys_await(l, error);
}

/* What attention and MLP have as input on this rank: a norm, or where norms come after alone, the residual stream. */
static void *attention_input(const struct layer *l)
{
	return l->norms_before ? l->a->norm : l->a->input;
}

static void *mlp_input(const struct layer *l)
{
	return l->norms_before ? l->a->post_norm : l->a->middle;
}

/* Of a piece: out = norm(sum), sum = x + residual. */
static void norm(const struct layer *l, void *out, void *rstd, void *sum, const void *x, const void *residual,
                 int tensor, int piece)
{
	wlb_norm(l->t, share_of(l, out, piece), rstd_of(l, rstd, piece), share_of(l, sum, piece), share_of(l, x, piece),
	         share_of(l, residual, piece), tensor, piece_rows(l, piece));
}

/* Of a piece, adds the gradient of x to d_x. */
static void norm_backward(const struct layer *l, void *d_x, const void *d_out, const void *x, const void *rstd,
                          int tensor, int piece)
{
	wlb_norm_backward(l->t, share_of(l, d_x, piece), share_of(l, d_out, piece), share_of(l, x, piece),
	                  rstd_of(l, rstd, piece), tensor, piece_rows(l, piece));
}

/* Of a piece, y += x. */
static void add(const struct layer *l, void *y, const void *x, int piece)
{
	l->device->ops->add(l->device, share_of(l, y, piece), share_of(l, x, piece), share_elements(l, piece));
}

/* Of a piece, out = x + norm(given): where the norms come after. */
static void add_norm(const struct layer *l, void *out, const void *x, void *rstd, const void *given, int tensor,
                     int piece)
{
	norm(l, out, rstd, NULL, given, NULL, tensor, piece);
	add(l, out, x, piece);
}

/* The gradient of what attention or MLP gave, `given`, where that of its result is d_residual. */
static void *d_given_of(const struct layer *l, void *d_residual)
{
	return l->norms_after ? l->s->d_norm : d_residual;
}

/* Starts to gather a piece of it. */
static int given_backward(const struct layer *l, void *d_residual, const void *given, const void *rstd, int tensor,
                          int piece, struct wlb_error *error)
{
	void *d_given = d_given_of(l, d_residual);
	if (l->norms_after) {
		l->device->ops->zero(l->device, share_of(l, d_given, piece),
		                     wlb_bytes(l->device->compute, share_elements(l, piece)));
		norm_backward(l, d_given, d_residual, given, rstd, tensor, piece);
	}
	return gather_start(l, l->s->addend, d_given, piece, error);
}

static int attention_gradient_start(const struct layer *l, void *d_residual, int piece, struct wlb_error *error)
{
	return given_backward(l, d_residual, l->a->given, l->a->given_rstd, l->w->attention_norm, piece, error);
}

static int mlp_gradient_start(const struct layer *l, void *d_residual, int piece, struct wlb_error *error)
{
	return given_backward(l, d_residual, l->a->mlp_given, l->a->mlp_given_rstd, l->w->mlp_norm, piece, error);
}

/* Awaits a piece of the gradient of the input of attention or MLP, in d_norm, and adds that of `x` to d_residual. */
static int input_backward(const struct layer *l, void *d_residual, const void *x, const void *rstd, int tensor,
                          int piece, struct wlb_error *error)
{
	if (wlb_comm_wait(l->t->sums[piece], error) < 0)
		return -1;
	if (l->norms_before)
		norm_backward(l, d_residual, l->s->d_norm, x, rstd, tensor, piece);
	else
		add(l, d_residual, l->s->d_norm, piece);
	return 0;
}

/* The input of attention, where it is a norm. */
static void norm_input(const struct layer *l, int piece)
{
	if (l->norms_before)
		norm(l, l->a->norm, l->a->rstd, NULL, l->a->input, NULL, l->w->input_norm, piece);
}

/* Starts to gather a piece of attention's input. */
static int attention_input_start(const struct layer *l, int piece, struct wlb_error *error)
{
	norm_input(l, piece);
	return gather_start(l, l->s->gathered, attention_input(l), piece, error);
}

/* Awaits a piece of what attention gave, and starts to gather one of the MLP's input. */
static int mlp_input_start(const struct layer *l, int piece, struct wlb_error *error)
{
	const struct wlb_layer_activations *a = l->a;
	if (wlb_comm_wait(l->t->sums[piece], error) < 0)
		return -1;
	if (l->norms_after)
		add_norm(l, a->middle, a->input, a->given_rstd, a->given, l->w->attention_norm, piece);
	if (l->norms_before)
		norm(l, a->post_norm, a->post_rstd, a->middle, a->middle,
		     l->tp_is_1 || l->norms_after ? NULL : a->input, l->w->post_norm, piece);
	return gather_start(l, l->s->gathered, mlp_input(l), piece, error);
}

/* given = O attention. Where no norm comes after and tp is above 1 `middle` lacks the input, which mlp_input_start
 * adds. */
static int attention_output(const struct layer *l, struct wlb_error *error)
{
	const struct wlb_layer_activations *a = l->a;
	void *given = l->norms_after ? a->given : a->middle, *addend = wlb_tp_rows(l->t, l->s->addend, given);
	const void *residual = l->tp_is_1 && !l->norms_after ? a->input : NULL;
	int last = last_piece(l);
	for (int i = 0; i <= last; i++) {
		wlb_linear(l->device, rows_of(l, addend, l->hidden, i), l->hidden,
		           rows_of(l, a->attention, l->q_width, i), &l->o, residual, piece_rows(l, i));
		if (i < last && sum_start(l, given, addend, i, error) < 0)
			return -1;
	}
	/* The next product needs the rows of A first: the sum of B runs beside it. */
	for (int i = 0; i < last; i++)
		if (mlp_input_start(l, i, error) < 0)
			return -1;
	return sum_start(l, given, addend, last, error);
}

/* Attention, of which nothing but the sums of the last piece is left to await. */
static int attention_forward(const struct layer *l, struct wlb_error *error)
{
	if (queries_and_keys(l, wlb_tp_rows(l->t, l->s->gathered, attention_input(l)), error) < 0)
		return -1;
	attend(l);
	return attention_output(l, error);
}

/* Before the backward pass of attention SELECTIVE computes the norm again and gathers the keys and values again. */
static int recompute_attention_start(const struct layer *l, struct wlb_error *error)
{
	if (l->a->recompute != WLB_RECOMPUTE_SELECTIVE)
		return 0;
	for (int i = 0; i <= last_piece(l); i++)
		norm_input(l, i);
	return gather_keys_start(l, error);
}

static int recompute_attention_await(const struct layer *l, struct wlb_error *error)
{
	return l->a->recompute == WLB_RECOMPUTE_SELECTIVE ? gather_keys_await(l, error) : 0;
}

/* From the gradient of what attention gave, whose rows d_rows are under way, to d_qkv, and the gradient of O. `x` has
 * the rows of attention's input, which are under way on return, since only the gradient of the next matrix needs them.
 */
static int attend_and_output_backward(const struct layer *l, const void *d_rows, void *x,
                                      struct wlb_comm_request *x_rows[2], struct wlb_error *error)
{
	const struct wlb_layer_activations *a = l->a;
	const struct wlb_scratch *s = l->s;
	const struct keys d_own = own_keys(l, s->d_qkv);
	if (recompute_attention_start(l, error) < 0)
		return -1;
	for (int i = 0; i <= last_piece(l); i++) {
		if (wlb_comm_wait(l->t->rows[i], error) < 0)
			return -1;
		wlb_linear_d_x(l->device, rows_of(l, s->d_attention, l->q_width, i), 0,
		               rows_of(l, d_rows, l->hidden, i), l->hidden, &l->o, piece_rows(l, i));
	}
	if (gather_all_start(l, x, attention_input(l), x_rows, error) < 0 || recompute_attention_await(l, error) < 0)
		return -1;
	attend_backward(l);
	if (wlb_cp_reduce_scatter_start(l->t, s->d_kv_all, l->batch, error) < 0)
		return -1;
	wlb_linear_d_w(l->device, d_rows, l->hidden, a->attention, &l->o, l->n);
	return wlb_cp_reduce_scatter_await(l->t, d_own.k, d_own.stride, s->d_kv_all, l->batch, error);
}

/* Of a piece, d_residual becomes the gradient of `input`; starts that of the layer before. */
static int attention_input_backward(const struct layer *l, const struct layer *next, void *d_residual, int piece,
                                    struct wlb_error *error)
{
	if (input_backward(l, d_residual, l->a->input, l->a->rstd, l->w->input_norm, piece, error) < 0)
		return -1;
	return next != NULL ? mlp_gradient_start(next, d_residual, piece, error) : 0;
}

/* d_residual: the gradient of `middle` in, of `input` out. */
static int attention_backward(const struct layer *l, const struct layer *next, void *d_residual,
                              struct wlb_error *error)
{
	const struct wlb_scratch *s = l->s;
	void *x = wlb_tp_rows(l->t, s->gathered, attention_input(l)), *d_x = wlb_tp_rows(l->t, s->addend, s->d_norm);
	const void *d_rows = wlb_tp_rows(l->t, s->addend, d_given_of(l, d_residual));
	struct wlb_comm_request *x_rows[2];
	int last = last_piece(l);
	if (attend_and_output_backward(l, d_rows, x, x_rows, error) < 0)
		return -1;
	rope(l, s->d_qkv, WLB_QKV, -1);
	if (wlb_qkv_vectors_backward(l->t, l->w, l->a, s->d_qkv, l->n, error) < 0)
		return -1;
	for (int i = 0; i <= last; i++) {
		project_d_x(l, d_x, i);
		if (sum_start(l, s->d_norm, d_x, i, error) < 0)
			return -1;
	}
	for (int i = 0; i < last; i++)
		if (attention_input_backward(l, next, d_residual, i, error) < 0)
			return -1;
	if (await_all(x_rows, error) < 0)
		return -1;
	project_d_w(l, x);
	return attention_input_backward(l, next, d_residual, last, error);
}

/* Of a piece, the MLP up to gate_up. The input of the last of two is made when the first one's next product can run
 * beside its gather. */
static int gates_and_ups(const struct layer *l, int piece, struct wlb_error *error)
{
	const void *y = wlb_tp_rows(l->t, l->s->gathered, mlp_input(l));
	int64_t width = 2 * l->p->intermediate;
	int last = last_piece(l);
	if ((last == 0 && mlp_input_start(l, last, error) < 0) || wlb_comm_wait(l->t->rows[piece], error) < 0)
		return -1;
	wlb_linear(l->device, rows_of(l, l->a->gate_up, width, piece), width, rows_of(l, y, l->hidden, piece),
	           &l->gate_up, NULL, piece_rows(l, piece));
	return piece + 1 == last ? mlp_input_start(l, last, error) : 0;
}

/* Of a piece, silu(gate) * up */
static void activate(const struct layer *l, int piece)
{
	int64_t width = l->p->intermediate;
	(l->gelu_gate ? l->device->ops->geglu_forward : l->device->ops->swiglu_forward)(
		l->device, rows_of(l, l->s->activated, width, piece), rows_of(l, l->a->gate_up, 2 * width, piece),
		piece_rows(l, piece), width);
}

/* Of a piece, starts given = down(silu(gate) * up), with `middle` where no norm comes after and tp is 1. */
static int down(const struct layer *l, void *given, int piece, struct wlb_error *error)
{
	void *addend = wlb_tp_rows(l->t, l->s->addend, given);
	wlb_linear(l->device, rows_of(l, addend, l->hidden, piece), l->hidden,
	           rows_of(l, l->s->activated, l->p->intermediate, piece), &l->down,
	           l->tp_is_1 && !l->norms_after ? l->a->middle : NULL, piece_rows(l, piece));
	return sum_start(l, given, addend, piece, error);
}

/* Of a piece, the layer's output, with which the next layer begins. */
static int output(const struct layer *l, const struct layer *next, void *out, int piece, struct wlb_error *error)
{
	const struct wlb_layer_activations *a = l->a;
	if (wlb_comm_wait(l->t->sums[piece], error) < 0)
		return -1;
	if (l->norms_after)
		add_norm(l, out, a->middle, a->mlp_given_rstd, a->mlp_given, l->w->mlp_norm, piece);
	else if (!l->tp_is_1)
		add(l, out, a->middle, piece);
	return next != NULL ? attention_input_start(next, piece, error) : 0;
}

static int mlp_forward(const struct layer *l, const struct layer *next, void *out, struct wlb_error *error)
{
	void *given = l->norms_after ? l->a->mlp_given : out;
	int last = last_piece(l);
	for (int i = 0; i <= last; i++) {
		if (gates_and_ups(l, i, error) < 0)
			return -1;
		activate(l, i);
		/* The next layer's rows are gathered beside the last product. */
		if ((i > 0 && output(l, next, out, i - 1, error) < 0) || down(l, given, i, error) < 0)
			return -1;
	}
	return output(l, next, out, last, error);
}

/* Before the backward pass of the MLP SELECTIVE computes the norm again. */
static void recompute_mlp(const struct layer *l)
{
	const struct wlb_layer_activations *a = l->a;
	if (a->recompute != WLB_RECOMPUTE_SELECTIVE || !l->norms_before)
		return;
	for (int i = 0; i <= last_piece(l); i++)
		norm(l, a->post_norm, a->post_rstd, NULL, a->middle, NULL, l->w->post_norm, i);
}

/* From the gradient of what the MLP gave, whose rows d_out are under way, to that of gate_up, and the gradient of down.
 * The pass of the gate replaces gate_up by its gradient, and the gradient of its output by its output, which the
 * gradient of the matrix needs. `y` has the rows of the MLP's input, which are under way on return. */
static int gates_and_down_backward(const struct layer *l, const void *d_out, void *y,
                                   struct wlb_comm_request *y_rows[2], struct wlb_error *error)
{
	const struct wlb_scratch *s = l->s;
	recompute_mlp(l);
	for (int i = 0; i <= last_piece(l); i++) {
		if (wlb_comm_wait(l->t->rows[i], error) < 0)
			return -1;
		wlb_linear_d_x(l->device, rows_of(l, s->activated, l->p->intermediate, i), 0,
		               rows_of(l, d_out, l->hidden, i), l->hidden, &l->down, piece_rows(l, i));
	}
	if (gather_all_start(l, y, mlp_input(l), y_rows, error) < 0)
		return -1;
	(l->gelu_gate ? l->device->ops->geglu_backward : l->device->ops->swiglu_backward)(
		l->device, l->a->gate_up, s->activated, l->n, l->p->intermediate);
	wlb_linear_d_w(l->device, d_out, l->hidden, s->activated, &l->down, l->n);
	return 0;
}

/* Of a piece, d_residual becomes the gradient of `middle`, with which that of attention begins. */
static int mlp_input_backward(const struct layer *l, void *d_residual, int piece, struct wlb_error *error)
{
	if (input_backward(l, d_residual, l->a->middle, l->a->post_rstd, l->w->post_norm, piece, error) < 0)
		return -1;
	return attention_gradient_start(l, d_residual, piece, error);
}

/* d_residual: the gradient of the layer's output in, of `middle` out. */
static int mlp_backward(const struct layer *l, void *d_residual, struct wlb_error *error)
{
	const struct wlb_scratch *s = l->s;
	void *y = wlb_tp_rows(l->t, s->gathered, mlp_input(l)), *d_y = wlb_tp_rows(l->t, s->addend, s->d_norm);
	const void *d_out = wlb_tp_rows(l->t, s->addend, d_given_of(l, d_residual)), *d_gate_up = l->a->gate_up;
	int64_t width = 2 * l->p->intermediate;
	struct wlb_comm_request *y_rows[2];
	int last = last_piece(l);
	if (gates_and_down_backward(l, d_out, y, y_rows, error) < 0)
		return -1;
	for (int i = 0; i <= last; i++) {
		wlb_linear_d_x(l->device, rows_of(l, d_y, l->hidden, i), 0, rows_of(l, d_gate_up, width, i), width,
		               &l->gate_up, piece_rows(l, i));
		if (sum_start(l, s->d_norm, d_y, i, error) < 0)
			return -1;
	}
	for (int i = 0; i < last; i++)
		if (mlp_input_backward(l, d_residual, i, error) < 0)
			return -1;
	if (await_all(y_rows, error) < 0)
		return -1;
	wlb_linear_d_w(l->device, d_gate_up, width, y, &l->gate_up, l->n);
	return mlp_input_backward(l, d_residual, last, error);
}

/* FULL computes what the backward pass needs of the layer again before it: all of attention, and the MLP up to gate_up,
 * or where a norm comes after, up to that norm. */
static int recompute_layer(const struct layer *l, struct wlb_error *error)
{
	const struct wlb_layer_activations *a = l->a;
	int last = last_piece(l);
	for (int i = 0; i <= last; i++)
		if (attention_input_start(l, i, error) < 0)
			return -1;
	if (attention_forward(l, error) < 0)
		return -1;
	for (int i = 0; i <= last; i++) {
		if (gates_and_ups(l, i, error) < 0)
			return -1;
		if (!l->norms_after)
			continue;
		activate(l, i);
		if (down(l, a->mlp_given, i, error) < 0)
			return -1;
	}
	/* Its statistic alone is needed: the norm itself goes where nothing is kept. */
	for (int i = 0; l->norms_after && i <= last; i++) {
		if (wlb_comm_wait(l->t->sums[i], error) < 0)
			return -1;
		norm(l, l->s->d_norm, a->mlp_given_rstd, NULL, a->mlp_given, NULL, l->w->mlp_norm, i);
	}
	return 0;
}

int wlb_layer_forward(struct wlb_transformer *t, const struct wlb_layer *layer, const struct wlb_layer *next, void *out,
                      const struct wlb_micro_batch *batch, struct wlb_error *error)
{
	const struct layer l = layer_of(t, layer, batch), following = next != NULL ? layer_of(t, next, batch) : l;
	for (int i = 0; !t->has_begun && i <= last_piece(&l); i++)
		if (attention_input_start(&l, i, error) < 0)
			return -1;
	if (attention_forward(&l, error) < 0)
		return -1;
	wlb_pass_progress(t);
	if (mlp_forward(&l, next != NULL ? &following : NULL, out, error) < 0)
		return -1;
	wlb_pass_progress(t);
	t->has_begun = next != NULL;
	return 0;
}

int wlb_layer_backward(struct wlb_transformer *t, const struct wlb_layer *layer, const struct wlb_layer *next,
                       void *d_residual, const struct wlb_micro_batch *batch, struct wlb_error *error)
{
	/* What computes a whole layer again uses the buffers of what would be under way. */
	int begins = next != NULL && next->activations->recompute != WLB_RECOMPUTE_FULL;
	const struct layer l = layer_of(t, layer, batch), following = begins ? layer_of(t, next, batch) : l;
	if (l.a->recompute == WLB_RECOMPUTE_FULL && recompute_layer(&l, error) < 0)
		return -1;
	for (int i = 0; !t->has_begun && i <= last_piece(&l); i++)
		if (mlp_gradient_start(&l, d_residual, i, error) < 0)
			return -1;
	if (mlp_backward(&l, d_residual, error) < 0)
		return -1;
	wlb_pass_progress(t);
	if (attention_backward(&l, begins ? &following : NULL, d_residual, error) < 0)
		return -1;
	wlb_pass_progress(t);
	t->has_begun = begins;
	return 0;
}

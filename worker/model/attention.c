/* Attention of a layer. */
#include "worker/model/context_parallel.h"
#include "worker/model/layer_parts.h"
#include "worker/model/qkv_vectors.h"

/* A product whose result is the columns of qkv from `column` on. */
struct projection {
	struct wlb_matrix w;
	int64_t column;
};

/* The products of these parts of [Q K V]: one where they lie together and all are wanted. Keys and values that several
 * tensor-parallel ranks hold are in a bucket of their own. Returns how many. */
static int list_projections(const struct wlb_layer_pass *l, enum wlb_qkv parts, struct projection list[2])
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
static void project(const struct wlb_layer_pass *l, const void *x, enum wlb_qkv parts, int piece)
{
	struct projection list[2];
	int count = list_projections(l, parts, list);
	void *qkv = wlb_piece_of(l, l->a->qkv, l->qkv_width, piece);
	for (int i = 0; i < count; i++)
		wlb_linear(l->device, wlb_element(l->device->compute, qkv, list[i].column), l->qkv_width,
		           wlb_piece_of(l, x, l->hidden, piece), &list[i].w, NULL, wlb_piece_rows(l, piece));
}

/* Of a piece, d_x = d_qkv [Q K V] */
static void project_d_x(const struct wlb_layer_pass *l, void *d_x, int piece)
{
	struct projection list[2];
	int count = list_projections(l, WLB_QKV, list);
	void *d_qkv = wlb_piece_of(l, l->s->d_qkv, l->qkv_width, piece);
	for (int i = 0; i < count; i++)
		wlb_linear_d_x(l->device, wlb_piece_of(l, d_x, l->hidden, piece), i > 0,
		               wlb_element(l->device->compute, d_qkv, list[i].column), l->qkv_width, &list[i].w,
		               wlb_piece_rows(l, piece));
}

/* Adds d_qkv^T x to the gradient of [Q K V]. */
static void project_d_w(const struct wlb_layer_pass *l, const void *x)
{
	struct projection list[2];
	int count = list_projections(l, WLB_QKV, list);
	for (int i = 0; i < count; i++)
		wlb_linear_d_w(l->device, wlb_element(l->device->compute, l->s->d_qkv, list[i].column), l->qkv_width, x,
		               &list[i].w, l->n);
}

/* Of a piece, rotates queries, keys, or both, which are neighbours; direction -1 rotates their gradients back. */
static void rope(const struct wlb_layer_pass *l, void *qkv, enum wlb_qkv parts, int direction, int piece)
{
	int with_queries = parts & WLB_QUERIES, with_keys = parts & WLB_KEYS_AND_VALUES, pairs = l->t->rotated_pairs;
	void *x = wlb_piece_of(l, qkv, l->qkv_width, piece);
	if (l->w->has_rope)
		l->device->ops->rope(
			l->device, wlb_element(l->device->compute, x, with_queries ? 0 : l->q_width), l->qkv_width,
			wlb_element(l->device->master, l->s->angles[l->w->angles],
		                    l->pieces.piece[piece].first * 2 * pairs),
			wlb_piece_rows(l, piece), (with_queries ? l->p->heads : 0) + (with_keys ? l->p->kv_heads : 0),
			(int)l->p->shape.head_dim, pairs, direction);
}

/* The keys and values of a token, or their gradients, lie side by side: in qkv with its queries, or in kv_all, the rows
 * of all context-parallel ranks. */
struct keys {
	void *k, *v;
	int64_t stride, rows;
};

static struct keys keys_in(const struct wlb_layer_pass *l, void *kv, int64_t stride, int64_t rows)
{
	return (struct keys){kv, wlb_element(l->device->compute, kv, l->kv_width), stride, rows};
}

static struct keys own_keys(const struct wlb_layer_pass *l, void *qkv)
{
	return keys_in(l, wlb_element(l->device->compute, qkv, l->q_width), l->qkv_width, l->n);
}

/* The keys that attention reads: those of all ranks of its documents, or this rank's own where no other has a part. */
static struct keys all_keys(const struct wlb_layer_pass *l, void *qkv, void *kv_all)
{
	return l->batch->exchange_count == 0 ? own_keys(l, qkv) : keys_in(l, kv_all, 2 * l->kv_width, l->batch->tokens);
}

static struct wlb_attention_shape attention_shape(const struct wlb_layer_pass *l, const struct keys *keys)
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
static void clear_padding(const struct wlb_layer_pass *l, enum wlb_dtype dtype, void *x, int64_t width)
{
	int64_t first = l->batch->own_rows;
	l->device->ops->zero(l->device, wlb_element(dtype, x, first * width), wlb_bytes(dtype, (l->n - first) * width));
}

/* The segments of a piece's queries, or where the device takes tiles, all with the tiles of these. */
static struct wlb_segments segments_of(const struct wlb_layer_pass *l, int piece)
{
	struct wlb_segments of = l->batch->segments;
	int segments = l->batch->first_segments, tiles = l->batch->first_query_tiles;
	if (wlb_last_piece(l) == 0)
		return of;
	if (of.tile_rows > 0) {
		of.query_tiles += piece == 0 ? 0 : tiles;
		of.query_tile_count = piece == 0 ? tiles : of.query_tile_count - tiles;
		return of;
	}
	of.segments += piece == 0 ? 0 : segments;
	of.count = piece == 0 ? segments : of.count - segments;
	return of;
}

static void attend(const struct wlb_layer_pass *l, int piece)
{
	const struct wlb_layer_activations *a = l->a;
	const struct keys keys = all_keys(l, a->qkv, a->kv_all);
	const struct wlb_attention_shape shape = attention_shape(l, &keys);
	const struct wlb_segments segments = segments_of(l, piece);
	if (piece == 0) {
		clear_padding(l, l->device->compute, a->attention, l->q_width);
		clear_padding(l, l->device->master, a->lse, shape.heads);
	}
	l->device->ops->attention_forward(l->device, a->attention, a->lse, a->qkv, keys.k, keys.v, &segments, &shape);
}

/* From d_attention to d_qkv, and to d_kv_all where keys are exchanged. */
static void attend_backward(const struct wlb_layer_pass *l)
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
static int gather_keys_start(const struct wlb_layer_pass *l, struct wlb_error *error)
{
	const struct keys own = own_keys(l, l->a->qkv);
	return wlb_cp_all_gather_start(l->t, own.k, own.stride, l->batch, error);
}

static int gather_keys_await(const struct wlb_layer_pass *l, struct wlb_error *error)
{
	return wlb_cp_all_gather_await(l->t, l->a->kv_all, l->batch, error);
}

/* Of a piece of the input, whose rows are under way, these parts of qkv, with biases, norms and rotation. */
static int make_parts(const struct wlb_layer_pass *l, enum wlb_qkv parts, int piece, struct wlb_error *error)
{
	project(l, wlb_tp_rows(l->t, l->s->gathered, wlb_attention_input(l)), parts, piece);
	if (wlb_qkv_vectors(l->t, l->w, l->a, parts, l->pieces.piece[piece], error) < 0)
		return -1;
	rope(l, l->a->qkv, parts, +1, piece);
	return 0;
}

/* Of a piece, these parts of qkv. The sum of the last piece of the layer before ran beside what came before this: of
 * two, beside the products of the first. */
static int queries_and_keys(const struct wlb_layer_pass *l, const struct wlb_layer_pass *before, enum wlb_qkv parts,
                            int piece, struct wlb_error *error)
{
	int last = wlb_last_piece(l);
	if ((before != NULL && last == 0 && wlb_attention_input_start(l, before, last, error) < 0) ||
	    wlb_comm_wait(l->t->rows[piece], error) < 0 || make_parts(l, parts, piece, error) < 0)
		return -1;
	return before != NULL && piece + 1 == last ? wlb_attention_input_start(l, before, last, error) : 0;
}

/* qkv of all pieces, and the keys and values of all ranks of the documents. */
static int exchange_keys(const struct wlb_layer_pass *l, const struct wlb_layer_pass *before, struct wlb_error *error)
{
	enum wlb_qkv first = l->keys_first ? WLB_KEYS_AND_VALUES : WLB_QKV;
	int last = wlb_last_piece(l);
	for (int i = 0; i <= last; i++)
		if (queries_and_keys(l, before, i < last ? WLB_QKV : first, i, error) < 0)
			return -1;
	if (gather_keys_start(l, error) < 0 || (l->keys_first && make_parts(l, WLB_QUERIES, last, error) < 0))
		return -1;
	return gather_keys_await(l, error);
}

/* Of a piece, given = O attention. Where no norm comes after and tp is above 1 `middle` lacks the input, which
 * wlb_mlp_input_start adds. */
static int output(const struct wlb_layer_pass *l, int piece, struct wlb_error *error)
{
	const struct wlb_layer_activations *a = l->a;
	void *given = l->norms_after ? a->given : a->middle, *addend = wlb_tp_rows(l->t, l->s->addend, given);
	const void *residual = l->tp_is_1 && !l->norms_after ? a->input : NULL;
	wlb_linear(l->device, wlb_piece_of(l, addend, l->hidden, piece), l->hidden,
	           wlb_piece_of(l, a->attention, l->q_width, piece), &l->o, residual, wlb_piece_rows(l, piece));
	return wlb_piece_sum_start(l, given, addend, piece, error);
}

int wlb_attention_forward(const struct wlb_layer_pass *l, const struct wlb_layer_pass *before, struct wlb_error *error)
{
	int last = wlb_last_piece(l), exchanges = l->batch->exchange_count > 0;
	for (int i = 0; before == NULL && i <= last; i++)
		if (wlb_attention_input_start(l, NULL, i, error) < 0)
			return -1;
	if (exchanges && exchange_keys(l, before, error) < 0)
		return -1;
	/* Without exchanges attention of A sees keys of A alone. The sum of A runs beside the products of B, and its
	 * rows are gathered beside attention of B; with them, beside attention of B and the product after it. */
	for (int i = 0; i <= last; i++) {
		if (!exchanges && (queries_and_keys(l, before, WLB_QKV, i, error) < 0 ||
		                   (i > 0 && wlb_mlp_input_start(l, i - 1, error) < 0)))
			return -1;
		attend(l, i);
		if ((exchanges && i > 0 && wlb_mlp_input_start(l, i - 1, error) < 0) || output(l, i, error) < 0)
			return -1;
	}
	return 0;
}

/* Before the backward pass of attention SELECTIVE computes the norm again and gathers the keys and values again. */
static int recompute_attention_start(const struct wlb_layer_pass *l, struct wlb_error *error)
{
	if (l->a->recompute != WLB_RECOMPUTE_SELECTIVE)
		return 0;
	for (int i = 0; i <= wlb_last_piece(l); i++)
		wlb_norm_input(l, i);
	return gather_keys_start(l, error);
}

static int recompute_attention_await(const struct wlb_layer_pass *l, struct wlb_error *error)
{
	return l->a->recompute == WLB_RECOMPUTE_SELECTIVE ? gather_keys_await(l, error) : 0;
}

/* From the gradient of what attention gave, whose rows d_rows are under way, to d_qkv, and the gradient of O. `x` has
 * the rows of attention's input, which are under way on return, since only the gradient of the next matrix needs them.
 */
static int attend_and_output_backward(const struct wlb_layer_pass *l, const void *d_rows, void *x,
                                      struct wlb_comm_request *x_rows[2], struct wlb_error *error)
{
	const struct wlb_layer_activations *a = l->a;
	const struct wlb_scratch *s = l->s;
	const struct keys d_own = own_keys(l, s->d_qkv);
	if (recompute_attention_start(l, error) < 0)
		return -1;
	for (int i = 0; i <= wlb_last_piece(l); i++) {
		if (wlb_comm_wait(l->t->rows[i], error) < 0)
			return -1;
		wlb_linear_d_x(l->device, wlb_piece_of(l, s->d_attention, l->q_width, i), 0,
		               wlb_piece_of(l, d_rows, l->hidden, i), l->hidden, &l->o, wlb_piece_rows(l, i));
	}
	if (wlb_layer_gather_start(l, x, wlb_attention_input(l), x_rows, error) < 0 ||
	    recompute_attention_await(l, error) < 0)
		return -1;
	attend_backward(l);
	if (wlb_cp_reduce_scatter_start(l->t, s->d_kv_all, l->batch, error) < 0)
		return -1;
	wlb_linear_d_w(l->device, d_rows, l->hidden, a->attention, &l->o, l->n);
	return wlb_cp_reduce_scatter_await(l->t, d_own.k, d_own.stride, s->d_kv_all, l->batch, error);
}

/* Of a piece, d_residual becomes the gradient of `input`; starts that of the layer before, or of the embedding. */
static int attention_input_backward(const struct wlb_layer_pass *l, const struct wlb_layer_pass *next, void *d_residual,
                                    int piece, struct wlb_error *error)
{
	if (wlb_input_backward(l, d_residual, l->a->input, l->a->rstd, l->w->input_norm, piece, error) < 0)
		return -1;
	if (next != NULL)
		return wlb_mlp_gradient_start(next, d_residual, piece, error);
	return l->feeds_embedding ? wlb_embedding_gradient_start(l, d_residual, piece, error) : 0;
}

int wlb_attention_backward(const struct wlb_layer_pass *l, const struct wlb_layer_pass *next, void *d_residual,
                           struct wlb_error *error)
{
	const struct wlb_scratch *s = l->s;
	void *x = wlb_tp_rows(l->t, s->gathered, wlb_attention_input(l)),
	     *d_x = wlb_tp_rows(l->t, s->addend, s->d_norm);
	const void *d_rows = wlb_tp_rows(l->t, s->addend, wlb_given_gradient(l, d_residual));
	struct wlb_comm_request *x_rows[2];
	int last = wlb_last_piece(l);
	if (attend_and_output_backward(l, d_rows, x, x_rows, error) < 0)
		return -1;
	for (int i = 0; i <= last; i++) {
		rope(l, s->d_qkv, WLB_QKV, -1, i);
		if (wlb_qkv_vectors_backward(l->t, l->w, l->a, s->d_qkv, l->pieces.piece[i], error) < 0)
			return -1;
	}
	for (int i = 0; i <= last; i++) {
		project_d_x(l, d_x, i);
		if (wlb_piece_sum_start(l, s->d_norm, d_x, i, error) < 0)
			return -1;
	}
	for (int i = 0; i < last; i++)
		if (attention_input_backward(l, next, d_residual, i, error) < 0)
			return -1;
	if (wlb_layer_gather_await(x_rows, error) < 0)
		return -1;
	project_d_w(l, x);
	return attention_input_backward(l, next, d_residual, last, error);
}

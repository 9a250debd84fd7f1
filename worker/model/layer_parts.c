/* Pieces of rows, and what attention and MLP begin with. */
#include "worker/model/layer_parts.h"

#include "worker/model/norm.h"

/* Where the embedding is a chunk by itself, its pass has no layer, and its tensors are those of the next chunk. */
static int feeds_embedding(const struct wlb_parameters *p, const struct wlb_layer_tensors *w)
{
	const struct wlb_chunk *first = &p->chunks[0];
	return first->has_embedding && first->layers > 0 && w == first->tensors &&
	       !wlb_family(p->shape.family)->scales_embedding;
}

struct wlb_layer_pass wlb_layer_pass_of(struct wlb_transformer *t, const struct wlb_layer *layer,
                                        const struct wlb_micro_batch *batch)
{
	const struct wlb_layer_tensors *w = layer->tensors;
	const struct wlb_parameters *p = t->parameters;
	int64_t q_width = p->heads * p->shape.head_dim, kv_width = wlb_kv_width(t);
	return (struct wlb_layer_pass){
		.t = t,
		.device = t->device,
		.p = p,
		.w = w,
		.a = layer->activations,
		.s = &t->scratch,
		.batch = batch,
		.n = batch->rows,
		.pieces = wlb_tp_pieces_of(batch),
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
		.feeds_embedding = feeds_embedding(p, w),
	};
}

void *wlb_piece_of(const struct wlb_layer_pass *l, const void *x, int64_t width, int piece)
{
	return wlb_element(l->device->compute, (void *)x, l->pieces.piece[piece].first * width);
}

/* Returns this rank's share of a piece in x[n / tp, h], and in rstd[n / tp]; NULL stays NULL. */
static void *share_of(const struct wlb_layer_pass *l, const void *x, int piece)
{
	int64_t first = l->pieces.piece[piece].first / l->t->tp_size;
	return x != NULL ? wlb_element(l->device->compute, (void *)x, first * l->hidden) : NULL;
}

static void *rstd_of(const struct wlb_layer_pass *l, const void *rstd, int piece)
{
	return wlb_element(l->device->master, (void *)rstd, l->pieces.piece[piece].first / l->t->tp_size);
}

static int64_t share_elements(const struct wlb_layer_pass *l, int piece)
{
	return wlb_share_elements(l->t, wlb_piece_rows(l, piece));
}

/* Starts to gather a piece of x, of which the next product is. */
static int gather_start(const struct wlb_layer_pass *l, void *all, const void *x, int piece, struct wlb_error *error)
{
	return wlb_tp_all_gather_start(l->t, all, x, l->pieces.piece[piece], &l->t->rows[piece], error);
}

int wlb_piece_sum_start(const struct wlb_layer_pass *l, void *sum, const void *addend, int piece,
                        struct wlb_error *error)
{
	return wlb_tp_reduce_scatter_start(l->t, sum, addend, l->pieces.piece[piece], &l->t->sums[piece], error);
}

int wlb_layer_gather_start(const struct wlb_layer_pass *l, void *all, const void *x,
                           struct wlb_comm_request *requests[2], struct wlb_error *error)
{
	requests[1] = NULL;
	for (int i = 0; i <= wlb_last_piece(l); i++)
		if (wlb_tp_all_gather_start(l->t, all, x, l->pieces.piece[i], &requests[i], error) < 0)
			return -1;
	return 0;
}

int wlb_layer_gather_await(struct wlb_comm_request *const requests[2], struct wlb_error *error)
{
	return wlb_comm_wait(requests[0], error) < 0 || wlb_comm_wait(requests[1], error) < 0 ? -1 : 0;
}

void *wlb_attention_input(const struct wlb_layer_pass *l)
{
	return l->norms_before ? l->a->norm : l->a->input;
}

void *wlb_mlp_input(const struct wlb_layer_pass *l)
{
	return l->norms_before ? l->a->post_norm : l->a->middle;
}

void wlb_piece_norm(const struct wlb_layer_pass *l, void *out, void *rstd, void *sum, const void *x,
                    const void *residual, int tensor, int piece)
{
	wlb_norm(l->t, share_of(l, out, piece), rstd_of(l, rstd, piece), share_of(l, sum, piece), share_of(l, x, piece),
	         share_of(l, residual, piece), tensor, wlb_piece_rows(l, piece));
}

/* Of a piece, adds the gradient of x to d_x. */
static void norm_backward(const struct wlb_layer_pass *l, void *d_x, const void *d_out, const void *x, const void *rstd,
                          int tensor, int piece)
{
	wlb_norm_backward(l->t, share_of(l, d_x, piece), share_of(l, d_out, piece), share_of(l, x, piece),
	                  rstd_of(l, rstd, piece), tensor, wlb_piece_rows(l, piece));
}

void wlb_piece_add(const struct wlb_layer_pass *l, void *y, const void *x, int piece)
{
	l->device->ops->add(l->device, share_of(l, y, piece), share_of(l, x, piece), share_elements(l, piece));
}

void wlb_piece_add_norm(const struct wlb_layer_pass *l, void *out, const void *x, void *rstd, const void *given,
                        int tensor, int piece)
{
	wlb_piece_norm(l, out, rstd, NULL, given, NULL, tensor, piece);
	wlb_piece_add(l, out, x, piece);
}

void *wlb_given_gradient(const struct wlb_layer_pass *l, void *d_residual)
{
	return l->norms_after ? l->s->d_norm : d_residual;
}

/* Starts to gather a piece of it. */
static int given_backward(const struct wlb_layer_pass *l, void *d_residual, const void *given, const void *rstd,
                          int tensor, int piece, struct wlb_error *error)
{
	void *d_given = wlb_given_gradient(l, d_residual);
	if (l->norms_after) {
		l->device->ops->zero(l->device, share_of(l, d_given, piece),
		                     wlb_bytes(l->device->compute, share_elements(l, piece)));
		norm_backward(l, d_given, d_residual, given, rstd, tensor, piece);
	}
	return gather_start(l, l->s->addend, d_given, piece, error);
}

int wlb_attention_gradient_start(const struct wlb_layer_pass *l, void *d_residual, int piece, struct wlb_error *error)
{
	return given_backward(l, d_residual, l->a->given, l->a->given_rstd, l->w->attention_norm, piece, error);
}

int wlb_mlp_gradient_start(const struct wlb_layer_pass *l, void *d_residual, int piece, struct wlb_error *error)
{
	return given_backward(l, d_residual, l->a->mlp_given, l->a->mlp_given_rstd, l->w->mlp_norm, piece, error);
}

int wlb_embedding_gradient_start(const struct wlb_layer_pass *l, const void *d_residual, int piece,
                                 struct wlb_error *error)
{
	return gather_start(l, l->s->addend, d_residual, piece, error);
}

int wlb_input_backward(const struct wlb_layer_pass *l, void *d_residual, const void *x, const void *rstd, int tensor,
                       int piece, struct wlb_error *error)
{
	if (wlb_comm_wait(l->t->sums[piece], error) < 0)
		return -1;
	if (l->norms_before)
		norm_backward(l, d_residual, l->s->d_norm, x, rstd, tensor, piece);
	else
		wlb_piece_add(l, d_residual, l->s->d_norm, piece);
	return 0;
}

void wlb_norm_input(const struct wlb_layer_pass *l, int piece)
{
	if (l->norms_before)
		wlb_piece_norm(l, l->a->norm, l->a->rstd, NULL, l->a->input, NULL, l->w->input_norm, piece);
}

int wlb_piece_output(const struct wlb_layer_pass *l, void *out, int piece, struct wlb_error *error)
{
	const struct wlb_layer_activations *a = l->a;
	if (wlb_comm_wait(l->t->sums[piece], error) < 0)
		return -1;
	if (l->norms_after)
		wlb_piece_add_norm(l, out, a->middle, a->mlp_given_rstd, a->mlp_given, l->w->mlp_norm, piece);
	else if (!l->tp_is_1)
		wlb_piece_add(l, out, a->middle, piece);
	return 0;
}

int wlb_attention_input_start(const struct wlb_layer_pass *l, const struct wlb_layer_pass *before, int piece,
                              struct wlb_error *error)
{
	if (before != NULL && wlb_piece_output(before, l->a->input, piece, error) < 0)
		return -1;
	wlb_norm_input(l, piece);
	return gather_start(l, l->s->gathered, wlb_attention_input(l), piece, error);
}

int wlb_mlp_input_start(const struct wlb_layer_pass *l, int piece, struct wlb_error *error)
{
	const struct wlb_layer_activations *a = l->a;
	if (wlb_comm_wait(l->t->sums[piece], error) < 0)
		return -1;
	if (l->norms_after)
		wlb_piece_add_norm(l, a->middle, a->input, a->given_rstd, a->given, l->w->attention_norm, piece);
	if (l->norms_before)
		wlb_piece_norm(l, a->post_norm, a->post_rstd, a->middle, a->middle,
		               l->tp_is_1 || l->norms_after ? NULL : a->input, l->w->post_norm, piece);
	return gather_start(l, l->s->gathered, wlb_mlp_input(l), piece, error);
}

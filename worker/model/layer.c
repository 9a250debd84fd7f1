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
 * (Korthikanti et al. 2022). In the forward pass the operation after a collective needs its result.
 * Of the product for queries, keys and values the queries could be computed while the keys are gathered, but with two
 * products instead of one.
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
	int64_t hidden, q_width, kv_width, qkv_width;
	struct projection qkv[2]; /* the second is empty where one product computes all */
	struct wlb_matrix o, gate_up, down;
	int tp_is_1;
	int norms_before, norms_after;
	int gelu_gate;
};

static struct layer layer_of(struct wlb_transformer *t, const struct wlb_layer_tensors *w,
                             const struct wlb_layer_activations *a, const struct wlb_micro_batch *batch)
{
	const struct wlb_parameters *p = t->parameters;
	int64_t q_width = p->heads * p->shape.head_dim, kv_width = wlb_kv_width(t);
	/* Keys and values that several tensor-parallel ranks hold are in a bucket of their own. */
	int together = p->tensors[w->q].bucket == p->tensors[w->k].bucket;
	struct layer l = {
		.t = t,
		.device = t->device,
		.p = p,
		.w = w,
		.a = a,
		.s = &t->scratch,
		.batch = batch,
		.n = batch->rows,
		.hidden = p->shape.hidden_size,
		.q_width = q_width,
		.kv_width = kv_width,
		.qkv_width = q_width + 2 * kv_width,
		.qkv = {{wlb_matrix_of(p, w->q, together ? w->v : w->q), 0}},
		.o = wlb_matrix_of(p, w->o, w->o),
		.gate_up = wlb_matrix_of(p, w->gate, w->up),
		.down = wlb_matrix_of(p, w->down, w->down),
		.tp_is_1 = t->tp_size == 1,
		.norms_before = w->input_norm >= 0,
		.norms_after = w->attention_norm >= 0,
		.gelu_gate = wlb_family(p->shape.family)->gelu_gate,
	};
	if (!together)
		l.qkv[1] = (struct projection){wlb_matrix_of(p, w->k, w->v), q_width};
	return l;
}

/* qkv = x [Q K V]^T */
static void project(const struct layer *l, const void *x)
{
	for (const struct projection *one = l->qkv; one < l->qkv + 2; one++)
		if (one->w.weight.out > 0)
			wlb_linear(l->device, wlb_element(l->device->compute, l->a->qkv, one->column), l->qkv_width, x,
			           &one->w, NULL, l->n);
}

/* d_x = d_qkv [Q K V] */
static void project_d_x(const struct layer *l, void *d_x)
{
	for (const struct projection *one = l->qkv; one < l->qkv + 2; one++)
		if (one->w.weight.out > 0)
			wlb_linear_d_x(l->device, d_x, one > l->qkv,
			               wlb_element(l->device->compute, l->s->d_qkv, one->column), l->qkv_width, &one->w,
			               l->n);
}

/* Adds d_qkv^T x to the gradient of [Q K V]. */
static void project_d_w(const struct layer *l, const void *x)
{
	for (const struct projection *one = l->qkv; one < l->qkv + 2; one++)
		if (one->w.weight.out > 0)
			wlb_linear_d_w(l->device, wlb_element(l->device->compute, l->s->d_qkv, one->column),
			               l->qkv_width, x, &one->w, l->n);
}

/* Rotates queries and keys, which are neighbours; direction -1 rotates their gradients back. */
static void rope(const struct layer *l, void *qkv, int direction)
{
	if (l->w->has_rope)
		l->device->ops->rope(l->device, qkv, l->qkv_width, l->s->angles[l->w->angles], l->n,
		                     l->p->heads + l->p->kv_heads, (int)l->p->shape.head_dim, l->t->rotated_pairs,
		                     direction);
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

/* What attention and MLP have as input on this rank: a norm, or where norms come after alone, the residual stream. */
static void *attention_input(const struct layer *l)
{
	return l->norms_before ? l->a->norm : l->a->input;
}

static void *mlp_input(const struct layer *l)
{
	return l->norms_before ? l->a->post_norm : l->a->middle;
}

/* out = x + norm(given): where the norms come after. */
static void add_norm(const struct layer *l, void *out, const void *x, void *rstd, const void *given, int norm)
{
	wlb_norm(l->t, out, rstd, NULL, given, NULL, norm, l->n);
	l->device->ops->add(l->device, out, x, wlb_share_elements(l->t, l->n));
}

/* Returns the gradient of what attention or MLP gave, `given`, where that of its norm is d_residual; in d_norm. */
static void *given_backward(const struct layer *l, const void *d_residual, const void *given, const void *rstd,
                            int norm)
{
	void *d_given = l->s->d_norm;
	l->device->ops->zero(l->device, d_given, wlb_bytes(l->device->compute, wlb_share_elements(l->t, l->n)));
	wlb_norm_backward(l->t, d_given, d_residual, given, rstd, norm, l->n);
	return d_given;
}

/* Adds to d_residual the gradient of `x`, where that of the input of attention or MLP is d_norm. */
static void input_backward(const struct layer *l, void *d_residual, const void *x, const void *rstd, int norm)
{
	if (l->norms_before)
		wlb_norm_backward(l->t, d_residual, l->s->d_norm, x, rstd, norm, l->n);
	else
		l->device->ops->add(l->device, d_residual, l->s->d_norm, wlb_share_elements(l->t, l->n));
}

/* The input of attention, where it is a norm. */
static void norm_input(const struct layer *l)
{
	if (l->norms_before)
		wlb_norm(l->t, l->a->norm, l->a->rstd, NULL, l->a->input, NULL, l->w->input_norm, l->n);
}

/* Where no norm comes after and tp is above 1 `middle` lacks the input, which the norm of gates_and_ups adds. */
static int attention_forward(const struct layer *l, struct wlb_error *error)
{
	const struct wlb_layer_activations *a = l->a;
	void *given = l->norms_after ? a->given : a->middle, *addend = wlb_tp_rows(l->t, l->s->addend, given);
	void *x = wlb_tp_rows(l->t, l->s->gathered, attention_input(l));
	norm_input(l);
	if (wlb_tp_all_gather(l->t, x, attention_input(l), l->n, error) < 0)
		return -1;
	project(l, x);
	if (wlb_qkv_vectors(l->t, l->w, a, l->n, error) < 0)
		return -1;
	rope(l, a->qkv, +1);
	if (gather_keys_start(l, error) < 0 || gather_keys_await(l, error) < 0)
		return -1;
	attend(l);
	wlb_linear(l->device, addend, l->hidden, a->attention, &l->o, l->tp_is_1 && !l->norms_after ? a->input : NULL,
	           l->n);
	if (wlb_tp_reduce_scatter(l->t, given, addend, l->n, error) < 0)
		return -1;
	if (l->norms_after)
		add_norm(l, a->middle, a->input, a->given_rstd, given, l->w->attention_norm);
	return 0;
}

/* Before the backward pass of attention SELECTIVE computes the norm again and gathers the keys and values again. */
static int recompute_attention_start(const struct layer *l, struct wlb_error *error)
{
	if (l->a->recompute != WLB_RECOMPUTE_SELECTIVE)
		return 0;
	norm_input(l);
	return gather_keys_start(l, error);
}

static int recompute_attention_await(const struct layer *l, struct wlb_error *error)
{
	return l->a->recompute == WLB_RECOMPUTE_SELECTIVE ? gather_keys_await(l, error) : 0;
}

/* From the gradient of what attention gave, d_given, to d_qkv, and the gradient of O. `x` has the rows of attention's
 * input, which are under way, since only the gradient of the next matrix needs them. */
static int attend_and_output_backward(const struct layer *l, void *d_given, void *x, struct wlb_comm_request **x_rows,
                                      struct wlb_error *error)
{
	const struct wlb_layer_activations *a = l->a;
	const struct wlb_scratch *s = l->s;
	const struct keys d_own = own_keys(l, s->d_qkv);
	void *d_rows = wlb_tp_rows(l->t, s->gathered, d_given);
	if (recompute_attention_start(l, error) < 0 || wlb_tp_all_gather(l->t, d_rows, d_given, l->n, error) < 0)
		return -1;
	wlb_linear_d_x(l->device, s->d_attention, 0, d_rows, l->hidden, &l->o, l->n);
	if (recompute_attention_await(l, error) < 0)
		return -1;
	attend_backward(l);
	if (wlb_cp_reduce_scatter_start(l->t, s->d_kv_all, l->batch, error) < 0)
		return -1;
	wlb_linear_d_w(l->device, d_rows, l->hidden, a->attention, &l->o, l->n);
	if (wlb_tp_all_gather_start(l->t, x, attention_input(l), l->n, x_rows, error) < 0)
		return -1;
	return wlb_cp_reduce_scatter_await(l->t, d_own.k, d_own.stride, s->d_kv_all, l->batch, error);
}

/* d_residual: the gradient of `middle` in, of `input` out. */
static int attention_backward(const struct layer *l, void *d_residual, struct wlb_error *error)
{
	const struct wlb_layer_activations *a = l->a;
	const struct wlb_scratch *s = l->s;
	void *x = wlb_tp_rows(l->t, s->gathered, attention_input(l)), *d_x = wlb_tp_rows(l->t, s->addend, s->d_norm);
	void *d_given = d_residual;
	struct wlb_comm_request *x_rows, *d_norm;
	if (l->norms_after)
		d_given = given_backward(l, d_residual, a->given, a->given_rstd, l->w->attention_norm);
	if (attend_and_output_backward(l, d_given, x, &x_rows, error) < 0)
		return -1;
	rope(l, s->d_qkv, -1);
	if (wlb_qkv_vectors_backward(l->t, l->w, a, s->d_qkv, l->n, error) < 0)
		return -1;
	project_d_x(l, d_x);
	if (wlb_tp_reduce_scatter_start(l->t, s->d_norm, d_x, l->n, &d_norm, error) < 0 ||
	    wlb_comm_wait(x_rows, error) < 0)
		return -1;
	project_d_w(l, x);
	if (wlb_comm_wait(d_norm, error) < 0)
		return -1;
	input_backward(l, d_residual, a->input, a->rstd, l->w->input_norm);
	return 0;
}

/* The MLP up to gate_up. */
static int gates_and_ups(const struct layer *l, struct wlb_error *error)
{
	const struct wlb_layer_activations *a = l->a;
	void *y = wlb_tp_rows(l->t, l->s->gathered, mlp_input(l));
	if (l->norms_before)
		wlb_norm(l->t, a->post_norm, a->post_rstd, a->middle, a->middle,
		         l->tp_is_1 || l->norms_after ? NULL : a->input, l->w->post_norm, l->n);
	if (wlb_tp_all_gather(l->t, y, mlp_input(l), l->n, error) < 0)
		return -1;
	wlb_linear(l->device, a->gate_up, 2 * l->p->intermediate, y, &l->gate_up, NULL, l->n);
	return 0;
}

/* given = down(silu(gate) * up), from gate_up, with `middle` where no norm comes after and tp is 1. */
static int down(const struct layer *l, void *given, struct wlb_error *error)
{
	const struct wlb_layer_activations *a = l->a;
	void *addend = wlb_tp_rows(l->t, l->s->addend, given), *activated = l->s->activated;
	(l->gelu_gate ? l->device->ops->geglu_forward
	              : l->device->ops->swiglu_forward)(l->device, activated, a->gate_up, l->n, l->p->intermediate);
	wlb_linear(l->device, addend, l->hidden, activated, &l->down, l->tp_is_1 && !l->norms_after ? a->middle : NULL,
	           l->n);
	return wlb_tp_reduce_scatter(l->t, given, addend, l->n, error);
}

static int mlp_forward(const struct layer *l, void *out, struct wlb_error *error)
{
	const struct wlb_layer_activations *a = l->a;
	void *given = l->norms_after ? a->mlp_given : out;
	if (gates_and_ups(l, error) < 0 || down(l, given, error) < 0)
		return -1;
	if (l->norms_after)
		add_norm(l, out, a->middle, a->mlp_given_rstd, given, l->w->mlp_norm);
	else if (!l->tp_is_1)
		l->device->ops->add(l->device, out, a->middle, wlb_share_elements(l->t, l->n));
	return 0;
}

/* Before the backward pass of the MLP SELECTIVE computes the norm again. */
static void recompute_mlp(const struct layer *l)
{
	const struct wlb_layer_activations *a = l->a;
	if (a->recompute == WLB_RECOMPUTE_SELECTIVE && l->norms_before)
		wlb_norm(l->t, a->post_norm, a->post_rstd, NULL, a->middle, NULL, l->w->post_norm, l->n);
}

/* d_residual: the gradient of the layer's output in, of `middle` out. The pass of the gate replaces gate_up by its
 * gradient, and the gradient of its output by its output, which the gradient of the last matrix needs. */
static int mlp_backward(const struct layer *l, void *d_residual, struct wlb_error *error)
{
	const struct wlb_layer_activations *a = l->a;
	const struct wlb_scratch *s = l->s;
	void *d_given = d_residual, *y = wlb_tp_rows(l->t, s->gathered, mlp_input(l));
	void *d_y = wlb_tp_rows(l->t, s->addend, s->d_norm), *d_gate_up = a->gate_up;
	int64_t width = 2 * l->p->intermediate;
	struct wlb_comm_request *d_rows, *y_rows, *d_norm;
	if (l->norms_after)
		d_given = given_backward(l, d_residual, a->mlp_given, a->mlp_given_rstd, l->w->mlp_norm);
	void *d_out = wlb_tp_rows(l->t, s->gathered, d_given);
	if (wlb_tp_all_gather_start(l->t, d_out, d_given, l->n, &d_rows, error) < 0)
		return -1;
	recompute_mlp(l);
	if (wlb_comm_wait(d_rows, error) < 0)
		return -1;
	wlb_linear_d_x(l->device, s->activated, 0, d_out, l->hidden, &l->down, l->n);
	(l->gelu_gate ? l->device->ops->geglu_backward
	              : l->device->ops->swiglu_backward)(l->device, d_gate_up, s->activated, l->n, l->p->intermediate);
	wlb_linear_d_w(l->device, d_out, l->hidden, s->activated, &l->down, l->n);
	if (wlb_tp_all_gather_start(l->t, y, mlp_input(l), l->n, &y_rows, error) < 0)
		return -1;
	wlb_linear_d_x(l->device, d_y, 0, d_gate_up, width, &l->gate_up, l->n);
	if (wlb_tp_reduce_scatter_start(l->t, s->d_norm, d_y, l->n, &d_norm, error) < 0 ||
	    wlb_comm_wait(y_rows, error) < 0)
		return -1;
	wlb_linear_d_w(l->device, d_gate_up, width, y, &l->gate_up, l->n);
	if (wlb_comm_wait(d_norm, error) < 0)
		return -1;
	input_backward(l, d_residual, a->middle, a->post_rstd, l->w->post_norm);
	return 0;
}

/* FULL computes what the backward pass needs of the layer again before it: all of attention, and the MLP up to gate_up,
 * or where a norm comes after, up to that norm. */
static int recompute_layer(const struct layer *l, struct wlb_error *error)
{
	const struct wlb_layer_activations *a = l->a;
	if (a->recompute != WLB_RECOMPUTE_FULL)
		return 0;
	if (attention_forward(l, error) < 0 || gates_and_ups(l, error) < 0)
		return -1;
	if (!l->norms_after)
		return 0;
	if (down(l, a->mlp_given, error) < 0)
		return -1;
	/* Its statistic alone is needed: the norm itself goes where nothing is kept. */
	wlb_norm(l->t, l->s->d_norm, a->mlp_given_rstd, NULL, a->mlp_given, NULL, l->w->mlp_norm, l->n);
	return 0;
}

int wlb_layer_forward(struct wlb_transformer *t, const struct wlb_layer_tensors *w,
                      const struct wlb_layer_activations *a, void *out, const struct wlb_micro_batch *batch,
                      struct wlb_error *error)
{
	const struct layer l = layer_of(t, w, a, batch);
	if (attention_forward(&l, error) < 0)
		return -1;
	wlb_pass_progress(t);
	if (mlp_forward(&l, out, error) < 0)
		return -1;
	wlb_pass_progress(t);
	return 0;
}

int wlb_layer_backward(struct wlb_transformer *t, const struct wlb_layer_tensors *w,
                       const struct wlb_layer_activations *a, void *d_residual, const struct wlb_micro_batch *batch,
                       struct wlb_error *error)
{
	const struct layer l = layer_of(t, w, a, batch);
	if (recompute_layer(&l, error) < 0 || mlp_backward(&l, d_residual, error) < 0)
		return -1;
	wlb_pass_progress(t);
	if (attention_backward(&l, d_residual, error) < 0)
		return -1;
	wlb_pass_progress(t);
	return 0;
}

/*
 * A layer of Llama (Touvron et al. 2023), with the collectives of tensor parallelism with sequence-parallel regions
 * (Korthikanti et al. 2022) and of context parallelism (Llama 3, Dubey et al. 2024):
 *
 *   middle = input + O attention(rope(Q x), rope(K x), V x)    x = norm(input)
 *   out    = middle + down(silu(gate y) * up y)                y = norm(middle)
 *
 * Each half stands here forward, then backward. Progress is made with started communication between the halves.
 */
#include "worker/model/layer.h"

#include "worker/model/attention.h"
#include "worker/model/context_parallel.h"
#include "worker/model/linear.h"
#include "worker/model/norm.h"
#include "worker/model/tensor_parallel.h"

/* A layer in a pass over a micro-batch. */
struct layer {
	struct wlb_transformer *t;
	const struct wlb_parameters *p;
	const struct wlb_layer_tensors *w;
	const struct wlb_layer_activations *a;
	const struct wlb_micro_batch *batch;
	int64_t n; /* rows */
};

static struct layer layer_of(struct wlb_transformer *t, const struct wlb_layer_tensors *w,
                             const struct wlb_layer_activations *a, const struct wlb_micro_batch *batch)
{
	return (struct layer){t, t->parameters, w, a, batch, batch->rows};
}

/* Rotates queries and keys; direction -1 rotates their gradients back. */
static void rope(const struct layer *l, void *q, void *kv, int direction)
{
	const struct wlb_model *m = &l->p->shape;
	const struct wlb_ops *ops = l->t->device->ops;
	int dim = (int)m->head_dim;
	ops->rope(l->t->device, q, l->batch->positions, l->n, l->p->heads, dim, m->rope_theta, direction);
	ops->rope(l->t->device, kv, l->batch->positions, l->n, l->p->kv_heads, dim, m->rope_theta, direction);
}

static int attention_forward(const struct layer *l, struct wlb_error *error)
{
	const struct wlb_layer_activations *a = l->a;
	const void *x;
	wlb_norm(l->t, a->norm, a->rstd, a->input, l->w->input_norm, l->n);
	if (wlb_tp_gather(l->t, a->norm, l->n, &x, error) < 0)
		return -1;
	wlb_linear(l->p, a->q, x, l->w->q, l->n, 0.0);
	wlb_linear(l->p, a->kv, x, l->w->k, l->n, 0.0);
	wlb_linear(l->p, wlb_values(l->t, a->kv, l->n), x, l->w->v, l->n, 0.0);
	rope(l, a->q, a->kv, +1);
	if (wlb_cp_gather(l->t, a->kv_all, a->kv, l->batch, error) < 0)
		return -1;
	wlb_attention(l->t, a, l->batch);
	return wlb_tp_linear_onto(l->t, a->middle, a->input, a->attention, l->w->o, l->n, error);
}

/* d_residual: the gradient of `middle` in, of `input` out. */
static int attention_backward(const struct layer *l, void *d_residual, struct wlb_error *error)
{
	const struct wlb_layer_activations *a = l->a;
	const struct wlb_scratch *s = &l->t->scratch;
	const void *d_middle, *x;
	if (wlb_tp_gather(l->t, d_residual, l->n, &d_middle, error) < 0)
		return -1;
	wlb_linear_backward(l->p, s->d_attention, 0.0, d_middle, a->attention, l->w->o, l->n);
	wlb_attention_backward(l->t, a, l->batch);
	if (wlb_cp_scatter(l->t, s->d_kv, s->d_kv_all, l->batch, error) < 0)
		return -1;
	rope(l, s->d_q, s->d_kv, -1);
	if (wlb_tp_gather(l->t, a->norm, l->n, &x, error) < 0)
		return -1;
	wlb_linear_backward(l->p, s->addend, 0.0, s->d_q, x, l->w->q, l->n);
	wlb_linear_backward(l->p, s->addend, 1.0, s->d_kv, x, l->w->k, l->n);
	wlb_linear_backward(l->p, s->addend, 1.0, wlb_values(l->t, s->d_kv, l->n), x, l->w->v, l->n);
	if (wlb_tp_scatter(l->t, s->d_norm, s->addend, l->n, error) < 0)
		return -1;
	wlb_norm_backward(l->t, d_residual, s->d_norm, a->input, a->rstd, l->w->input_norm, l->n);
	return 0;
}

/* activated = silu(gate) * up */
static void gate(const struct layer *l)
{
	const struct wlb_layer_activations *a = l->a;
	l->t->device->ops->swiglu_forward(l->t->device, a->activated, a->gate, a->up, l->n * l->p->intermediate);
}

/* The MLP up to its last matrix, whose result the backward pass does not need. */
static int mlp_inner(const struct layer *l, struct wlb_error *error)
{
	const struct wlb_layer_activations *a = l->a;
	const void *y;
	wlb_norm(l->t, a->post_norm, a->post_rstd, a->middle, l->w->post_norm, l->n);
	if (wlb_tp_gather(l->t, a->post_norm, l->n, &y, error) < 0)
		return -1;
	wlb_linear(l->p, a->gate, y, l->w->gate, l->n, 0.0);
	wlb_linear(l->p, a->up, y, l->w->up, l->n, 0.0);
	gate(l);
	return 0;
}

static int mlp_forward(const struct layer *l, void *out, struct wlb_error *error)
{
	if (mlp_inner(l, error) < 0)
		return -1;
	return wlb_tp_linear_onto(l->t, out, l->a->middle, l->a->activated, l->w->down, l->n, error);
}

/* d_residual: the gradient of the layer's output in, of `middle` out. */
static int mlp_backward(const struct layer *l, void *d_residual, struct wlb_error *error)
{
	const struct wlb_layer_activations *a = l->a;
	const struct wlb_scratch *s = &l->t->scratch;
	const void *d_out, *y;
	if (wlb_tp_gather(l->t, d_residual, l->n, &d_out, error) < 0)
		return -1;
	wlb_linear_backward(l->p, s->d_activated, 0.0, d_out, a->activated, l->w->down, l->n);
	l->t->device->ops->swiglu_backward(l->t->device, s->d_gate, s->d_up, s->d_activated, a->gate, a->up,
	                                   l->n * l->p->intermediate);
	if (wlb_tp_gather(l->t, a->post_norm, l->n, &y, error) < 0)
		return -1;
	wlb_linear_backward(l->p, s->addend, 0.0, s->d_gate, y, l->w->gate, l->n);
	wlb_linear_backward(l->p, s->addend, 1.0, s->d_up, y, l->w->up, l->n);
	if (wlb_tp_scatter(l->t, s->d_norm, s->addend, l->n, error) < 0)
		return -1;
	wlb_norm_backward(l->t, d_residual, s->d_norm, a->middle, a->post_rstd, l->w->post_norm, l->n);
	return 0;
}

/* Runs before the backward pass of the MLP. FULL computes all of the layer again, also what attention needs; SELECTIVE
 * the norm and the gated product. */
static int recompute_mlp(const struct layer *l, struct wlb_error *error)
{
	const struct wlb_layer_activations *a = l->a;
	if (a->recompute == WLB_RECOMPUTE_FULL)
		return attention_forward(l, error) < 0 ? -1 : mlp_inner(l, error);
	if (a->recompute == WLB_RECOMPUTE_SELECTIVE) {
		wlb_norm(l->t, a->post_norm, a->post_rstd, a->middle, l->w->post_norm, l->n);
		gate(l);
	}
	return 0;
}

/* Runs before the backward pass of attention. SELECTIVE computes the norm again and gathers the keys and values again.
 */
static int recompute_attention(const struct layer *l, struct wlb_error *error)
{
	const struct wlb_layer_activations *a = l->a;
	if (a->recompute != WLB_RECOMPUTE_SELECTIVE)
		return 0;
	wlb_norm(l->t, a->norm, a->rstd, a->input, l->w->input_norm, l->n);
	return wlb_cp_gather(l->t, a->kv_all, a->kv, l->batch, error);
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
	if (recompute_mlp(&l, error) < 0 || mlp_backward(&l, d_residual, error) < 0)
		return -1;
	wlb_pass_progress(t);
	if (recompute_attention(&l, error) < 0 || attention_backward(&l, d_residual, error) < 0)
		return -1;
	wlb_pass_progress(t);
	return 0;
}

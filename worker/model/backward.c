#include "worker/model/activations.h"
#include "worker/model/context_parallel.h"
#include "worker/model/embedding.h"
#include "worker/model/linear.h"
#include "worker/model/recompute.h"
#include "worker/model/tensor_parallel.h"

/* d_residual: gradient of the layer's output in, of `middle` out. */
static int mlp_backward(struct wlb_transformer *t, const struct wlb_layer_tensors *w,
                        const struct wlb_layer_activations *a, const struct wlb_micro_batch *batch, void *d_residual,
                        struct wlb_error *error)
{
	const struct wlb_parameters *p = t->parameters;
	const struct wlb_scratch *s = &t->scratch;
	int64_t n = batch->rows;
	const void *d_out, *norm;

	if (wlb_tp_gather(t, d_residual, n, &d_out, error) < 0)
		return -1;
	wlb_linear_backward(p, s->d_activated, 0.0, d_out, a->activated, w->down, n);
	t->device->ops->swiglu_backward(t->device, s->d_gate, s->d_up, s->d_activated, a->gate, a->up,
	                                n * p->intermediate);
	if (wlb_tp_gather(t, a->post_norm, n, &norm, error) < 0)
		return -1;
	wlb_linear_backward(p, wlb_tp_addend(t, s->d_norm), 0.0, s->d_gate, norm, w->gate, n);
	wlb_linear_backward(p, wlb_tp_addend(t, s->d_norm), 1.0, s->d_up, norm, w->up, n);
	if (wlb_tp_scatter(t, s->d_norm, n, error) < 0)
		return -1;
	wlb_tp_norm_backward(t, d_residual, a->middle, a->post_rstd, w->post_norm, n);
	return 0;
}

/* From scratch.d_q and scratch.d_kv, after RoPE, to the gradients of q, k, v and, in scratch.d_norm, of norm. */
static int project_backward(struct wlb_transformer *t, const struct wlb_layer_tensors *w,
                            const struct wlb_layer_activations *a, const struct wlb_micro_batch *batch,
                            struct wlb_error *error)
{
	const struct wlb_parameters *p = t->parameters;
	const struct wlb_scratch *s = &t->scratch;
	const struct wlb_ops *ops = t->device->ops;
	int64_t n = batch->rows;
	int dim = (int)p->shape.head_dim;
	void *d_norm = wlb_tp_addend(t, s->d_norm);
	const void *norm;

	ops->rope(t->device, s->d_q, batch->positions, n, p->heads, dim, p->shape.rope_theta, -1);
	ops->rope(t->device, s->d_kv, batch->positions, n, p->kv_heads, dim, p->shape.rope_theta, -1);
	if (wlb_tp_gather(t, a->norm, n, &norm, error) < 0)
		return -1;
	wlb_linear_backward(p, d_norm, 0.0, s->d_q, norm, w->q, n);
	wlb_linear_backward(p, d_norm, 1.0, s->d_kv, norm, w->k, n);
	wlb_linear_backward(p, d_norm, 1.0, wlb_element(t, s->d_kv, n * p->kv_heads * dim), norm, w->v, n);
	return wlb_tp_scatter(t, s->d_norm, n, error);
}

/* d_residual: gradient of `middle` in, of the layer's input out. */
static int attention_backward(struct wlb_transformer *t, const struct wlb_layer_tensors *w,
                              const struct wlb_layer_activations *a, const struct wlb_micro_batch *batch,
                              void *d_residual, struct wlb_error *error)
{
	int64_t n = batch->rows;
	const void *d_out;

	if (wlb_tp_gather(t, d_residual, n, &d_out, error) < 0)
		return -1;
	wlb_linear_backward(t->parameters, t->scratch.d_attention, 0.0, d_out, a->attention, w->o, n);
	wlb_cp_attention_backward(t, a, batch);
	if (wlb_cp_scatter(t, batch, error) < 0 || project_backward(t, w, a, batch, error) < 0)
		return -1;
	wlb_tp_norm_backward(t, d_residual, a->input, a->rstd, w->input_norm, n);
	return 0;
}

static int layer_backward(struct wlb_transformer *t, const struct wlb_layer_tensors *w,
                          const struct wlb_layer_activations *a, const struct wlb_micro_batch *batch, void *d_residual,
                          struct wlb_error *error)
{
	if (wlb_recompute_mlp(t, w, a, batch, error) < 0 || mlp_backward(t, w, a, batch, d_residual, error) < 0)
		return -1;
	wlb_pass_progress(t);
	if (wlb_recompute_attention(t, w, a, batch, error) < 0 ||
	    attention_backward(t, w, a, batch, d_residual, error) < 0)
		return -1;
	wlb_pass_progress(t);
	return 0;
}

int wlb_backward(struct wlb_transformer *t, int chunk, struct wlb_slot *slot, const struct wlb_micro_batch *batch,
                 const struct wlb_backward_watch *watch, struct wlb_error *error)
{
	const struct wlb_chunk *c = &t->parameters->chunks[chunk];
	for (int l = c->layers - 1; l >= 0; l--)
		if (layer_backward(t, &c->tensors[l], &slot->layers[l], batch, slot->output, error) < 0 ||
		    wlb_layer_done(watch, chunk, l, error) < 0)
			return -1;
	if (!c->has_embedding)
		return 0;
	if (wlb_embedding_backward(t, slot->output, batch, error) < 0)
		return -1;
	return wlb_layer_done(watch, chunk, -1, error);
}

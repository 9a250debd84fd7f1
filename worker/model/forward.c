#include "worker/model/forward.h"

#include "worker/model/context_parallel.h"
#include "worker/model/embedding.h"
#include "worker/model/linear.h"
#include "worker/model/tensor_parallel.h"

/* Computes q and kv of this rank's heads from the norm. */
static int project(struct wlb_transformer *t, const struct wlb_layer_tensors *w, const struct wlb_layer_activations *a,
                   const struct wlb_micro_batch *batch, struct wlb_error *error)
{
	const struct wlb_parameters *p = t->parameters;
	const struct wlb_ops *ops = t->device->ops;
	int64_t n = batch->rows;
	int dim = (int)p->shape.head_dim;
	const void *norm;

	if (wlb_tp_gather(t, a->norm, n, &norm, error) < 0)
		return -1;
	wlb_linear(p, a->q, norm, w->q, n, 0.0);
	wlb_linear(p, a->kv, norm, w->k, n, 0.0);
	wlb_linear(p, wlb_element(t, a->kv, n * p->kv_heads * dim), norm, w->v, n, 0.0);
	ops->rope(t->device, a->q, batch->positions, n, p->heads, dim, p->shape.rope_theta, +1);
	ops->rope(t->device, a->kv, batch->positions, n, p->kv_heads, dim, p->shape.rope_theta, +1);
	return 0;
}

int wlb_attention_half(struct wlb_transformer *t, const struct wlb_layer_tensors *w,
                       const struct wlb_layer_activations *a, const struct wlb_micro_batch *batch,
                       struct wlb_error *error)
{
	wlb_tp_norm(t, a->norm, a->rstd, a->input, w->input_norm, batch->rows);
	if (project(t, w, a, batch, error) < 0 || wlb_cp_gather(t, a, batch, error) < 0)
		return -1;
	wlb_cp_attention(t, a, batch);
	return wlb_tp_linear_onto(t, a->middle, a->input, a->attention, w->o, batch->rows, error);
}

int wlb_mlp_inner(struct wlb_transformer *t, const struct wlb_layer_tensors *w, const struct wlb_layer_activations *a,
                  const struct wlb_micro_batch *batch, struct wlb_error *error)
{
	const struct wlb_parameters *p = t->parameters;
	int64_t n = batch->rows;
	const void *norm;

	wlb_tp_norm(t, a->post_norm, a->post_rstd, a->middle, w->post_norm, n);
	if (wlb_tp_gather(t, a->post_norm, n, &norm, error) < 0)
		return -1;
	wlb_linear(p, a->gate, norm, w->gate, n, 0.0);
	wlb_linear(p, a->up, norm, w->up, n, 0.0);
	t->device->ops->swiglu_forward(t->device, a->activated, a->gate, a->up, n * p->intermediate);
	return 0;
}

int wlb_forward(struct wlb_transformer *t, int chunk, struct wlb_slot *slot, const struct wlb_micro_batch *batch,
                struct wlb_error *error)
{
	const struct wlb_chunk *c = &t->parameters->chunks[chunk];
	if (c->has_embedding && wlb_embedding(t, slot->input, batch, error) < 0)
		return -1;
	for (int l = 0; l < c->layers; l++) {
		const struct wlb_layer_tensors *w = &c->tensors[l];
		const struct wlb_layer_activations *a = &slot->layers[l];
		void *out = l + 1 < c->layers ? slot->layers[l + 1].input : slot->output;
		if (wlb_attention_half(t, w, a, batch, error) < 0)
			return -1;
		wlb_pass_progress(t);
		if (wlb_mlp_inner(t, w, a, batch, error) < 0 ||
		    wlb_tp_linear_onto(t, out, a->middle, a->activated, w->down, batch->rows, error) < 0)
			return -1;
		wlb_pass_progress(t);
	}
	if (c->layers == 0) /* the chunk is the embedding or the head alone */
		t->device->ops->copy(t->device, slot->output, slot->input,
		                     wlb_bytes(t, batch->rows / t->tp_size * t->parameters->shape.hidden_size));
	return 0;
}

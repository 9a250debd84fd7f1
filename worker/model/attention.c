#include "worker/model/attention.h"

static struct wlb_attention_shape shape_of(const struct wlb_transformer *t, const struct wlb_micro_batch *batch)
{
	const struct wlb_parameters *p = t->parameters;
	return (struct wlb_attention_shape){
		.q_tokens = batch->rows,
		.k_tokens = t->cp_size > 1 ? batch->tokens : batch->rows,
		.heads = p->heads,
		.kv_heads = p->kv_heads,
		.head_dim = (int)p->shape.head_dim,
	};
}

/* Zeroes the rows of x[n, width] that hold no token. */
static void clear_padding(const struct wlb_transformer *t, void *x, const struct wlb_micro_batch *batch, int64_t width)
{
	t->device->ops->zero(t->device, wlb_element(t, x, batch->own_rows * width),
	                     wlb_bytes(t, (batch->rows - batch->own_rows) * width));
}

void wlb_attention(struct wlb_transformer *t, const struct wlb_layer_activations *a,
                   const struct wlb_micro_batch *batch)
{
	struct wlb_attention_shape shape = shape_of(t, batch);
	clear_padding(t, a->attention, batch, shape.heads * shape.head_dim);
	clear_padding(t, a->lse, batch, shape.heads);
	t->device->ops->attention_forward(t->device, a->attention, a->lse, a->q, a->kv_all,
	                                  wlb_values(t, a->kv_all, shape.k_tokens), &batch->segments, &shape);
}

void wlb_attention_backward(struct wlb_transformer *t, const struct wlb_layer_activations *a,
                            const struct wlb_micro_batch *batch)
{
	const struct wlb_scratch *s = &t->scratch;
	const struct wlb_ops *ops = t->device->ops;
	struct wlb_attention_shape shape = shape_of(t, batch);
	clear_padding(t, s->d_q, batch, shape.heads * shape.head_dim);
	ops->zero(t->device, s->d_kv_all, wlb_bytes(t, 2 * shape.k_tokens * wlb_kv_width(t)));
	ops->attention_backward(t->device, s->d_q, s->d_kv_all, wlb_values(t, s->d_kv_all, shape.k_tokens),
	                        s->d_attention, a->q, a->kv_all, wlb_values(t, a->kv_all, shape.k_tokens), a->attention,
	                        a->lse, &batch->segments, &shape);
}

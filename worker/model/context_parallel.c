#include "worker/model/context_parallel.h"

static int64_t kv_width(const struct wlb_transformer *t)
{
	return t->parameters->kv_heads * t->parameters->shape.head_dim;
}

int wlb_cp_gather(struct wlb_transformer *t, const struct wlb_layer_activations *a, const struct wlb_micro_batch *batch,
                  struct wlb_error *error)
{
	if (t->cp_size == 1)
		return 0;
	int64_t width = kv_width(t);
	if (wlb_comm_all_gather(t->cp, t->scratch.kv_ranks, a->kv, (size_t)(2 * batch->rows * width), error) < 0)
		return -1;
	t->device->ops->gather_rows(t->device, a->kv_all, t->scratch.kv_ranks, batch->from_ranks, 2 * batch->tokens,
	                            width);
	return 0;
}

int wlb_cp_scatter(struct wlb_transformer *t, const struct wlb_micro_batch *batch, struct wlb_error *error)
{
	if (t->cp_size == 1)
		return 0;
	const struct wlb_scratch *s = &t->scratch;
	int64_t width = kv_width(t), rows = 2 * batch->rows;
	t->device->ops->gather_rows(t->device, s->kv_ranks, s->d_kv_all, batch->to_ranks, t->cp_size * rows, width);
	return wlb_comm_reduce_scatter(t->cp, s->d_kv, s->kv_ranks, (size_t)(rows * width), error);
}

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

void wlb_cp_attention(struct wlb_transformer *t, const struct wlb_layer_activations *a,
                      const struct wlb_micro_batch *batch)
{
	struct wlb_attention_shape shape = shape_of(t, batch);
	const void *values = wlb_element(t, a->kv_all, shape.k_tokens * kv_width(t));
	clear_padding(t, a->attention, batch, shape.heads * shape.head_dim);
	clear_padding(t, a->lse, batch, shape.heads);
	t->device->ops->attention_forward(t->device, a->attention, a->lse, a->q, a->kv_all, values, &batch->segments,
	                                  &shape);
}

void wlb_cp_attention_backward(struct wlb_transformer *t, const struct wlb_layer_activations *a,
                               const struct wlb_micro_batch *batch)
{
	const struct wlb_scratch *s = &t->scratch;
	const struct wlb_ops *ops = t->device->ops;
	struct wlb_attention_shape shape = shape_of(t, batch);
	int64_t keys = shape.k_tokens * kv_width(t);
	clear_padding(t, s->d_q, batch, shape.heads * shape.head_dim);
	ops->zero(t->device, s->d_kv_all, wlb_bytes(t, 2 * keys));
	ops->attention_backward(t->device, s->d_q, s->d_kv_all, wlb_element(t, s->d_kv_all, keys), s->d_attention, a->q,
	                        a->kv_all, wlb_element(t, a->kv_all, keys), a->attention, a->lse, &batch->segments,
	                        &shape);
}

#include "worker/model/transformer.h"

/* The gradients of y = x W^T: W's is added to, x's becomes d_out W + beta d_x. */
static void linear_backward(const struct wlb_parameters *p, void *d_x, double beta, const void *d_out, const void *x,
                            int tensor, int64_t tokens)
{
	struct wlb_device *device = p->device;
	int64_t out_width = p->tensors[tensor].rows, in_width = p->tensors[tensor].cols;
	device->ops->gemm(device, 0, 0, tokens, in_width, out_width, 1.0, d_out, out_width, wlb_weight(p, tensor),
	                  in_width, beta, d_x, in_width);
	device->ops->gemm(device, 1, 0, out_width, in_width, tokens, 1.0, d_out, out_width, x, in_width, 1.0,
	                  wlb_gradient(p, tensor), in_width);
}

/* d_residual: gradient of the layer's output in, of `middle` out. */
static void mlp_backward(const struct wlb_parameters *p, const struct wlb_layer_tensors *t,
                         const struct wlb_layer_activations *a, const struct wlb_activations *d, int64_t n)
{
	struct wlb_device *device = p->device;
	const struct wlb_ops *ops = device->ops;
	const struct wlb_model *m = &p->shape;

	linear_backward(p, d->d_activated, 0.0, d->d_residual, a->activated, t->down, n);
	ops->swiglu_backward(device, d->d_gate, d->d_up, d->d_activated, a->gate, a->up, n * m->intermediate_size);
	linear_backward(p, d->d_norm, 0.0, d->d_gate, a->post_norm, t->gate, n);
	linear_backward(p, d->d_norm, 1.0, d->d_up, a->post_norm, t->up, n);
	ops->rmsnorm_backward(device, d->d_residual, wlb_gradient(p, t->post_norm), d->d_norm, a->middle,
	                      wlb_weight(p, t->post_norm), a->post_rstd, n, m->hidden_size);
}

/* d_residual: gradient of `middle` in, of the layer's input out. */
static void attention_backward(const struct wlb_parameters *p, const struct wlb_layer_tensors *t,
                               const struct wlb_layer_activations *a, const struct wlb_activations *d,
                               const struct wlb_micro_batch *batch)
{
	struct wlb_device *device = p->device;
	const struct wlb_ops *ops = device->ops;
	const struct wlb_model *m = &p->shape;
	int64_t n = batch->tokens;
	struct wlb_attention_shape shape = wlb_attention_shape_of(m, n);
	size_t kv_bytes = (size_t)(n * shape.kv_heads * shape.head_dim) * wlb_dtype_bytes(device->dtype);

	linear_backward(p, d->d_attention, 0.0, d->d_residual, a->attention, t->o, n);
	ops->zero(device, d->d_k, kv_bytes);
	ops->zero(device, d->d_v, kv_bytes);
	ops->attention_backward(device, d->d_q, d->d_k, d->d_v, d->d_attention, a->q, a->k, a->v, a->attention, a->lse,
	                        &batch->segments, &shape);
	ops->rope(device, d->d_q, batch->positions, n, shape.heads, shape.head_dim, m->rope_theta, -1);
	ops->rope(device, d->d_k, batch->positions, n, shape.kv_heads, shape.head_dim, m->rope_theta, -1);
	linear_backward(p, d->d_norm, 0.0, d->d_q, a->norm, t->q, n);
	linear_backward(p, d->d_norm, 1.0, d->d_k, a->norm, t->k, n);
	linear_backward(p, d->d_norm, 1.0, d->d_v, a->norm, t->v, n);
	ops->rmsnorm_backward(device, d->d_residual, wlb_gradient(p, t->input_norm), d->d_norm, a->input,
	                      wlb_weight(p, t->input_norm), a->rstd, n, m->hidden_size);
}

void wlb_backward(const struct wlb_parameters *p, struct wlb_activations *a, const struct wlb_micro_batch *batch)
{
	struct wlb_device *device = p->device;
	const struct wlb_ops *ops = device->ops;
	const struct wlb_model *m = &p->shape;
	int64_t n = batch->tokens;

	linear_backward(p, a->d_norm, 0.0, a->logits, a->final_norm, p->head, n);
	ops->zero(device, a->d_residual, (size_t)(n * m->hidden_size) * wlb_dtype_bytes(device->dtype));
	ops->rmsnorm_backward(device, a->d_residual, wlb_gradient(p, p->final_norm), a->d_norm, a->output,
	                      wlb_weight(p, p->final_norm), a->final_rstd, n, m->hidden_size);
	for (int l = a->num_layers - 1; l >= 0; l--) {
		mlp_backward(p, &p->layers[l], &a->layers[l], a, n);
		attention_backward(p, &p->layers[l], &a->layers[l], a, batch);
	}
	ops->embedding_backward(device, wlb_gradient(p, p->embedding), a->d_residual, batch->ids, n, m->hidden_size,
	                        m->vocab_size);
}

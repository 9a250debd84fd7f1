#include "worker/model/transformer.h"

/* out[tokens, out_width] = x[tokens, in_width] W^T + beta out */
static void linear(const struct wlb_parameters *p, void *out, const void *x, int tensor, int64_t tokens, double beta)
{
	struct wlb_device *device = p->device;
	int64_t out_width = p->tensors[tensor].rows, in_width = p->tensors[tensor].cols;
	device->ops->gemm(device, 0, 1, tokens, out_width, in_width, 1.0, x, in_width, wlb_weight(p, tensor), in_width,
	                  beta, out, out_width);
}

/* middle = input + attention(norm(input)) */
static void attention_block(const struct wlb_parameters *p, const struct wlb_layer_tensors *t,
                            const struct wlb_layer_activations *a, const struct wlb_micro_batch *batch)
{
	struct wlb_device *device = p->device;
	const struct wlb_ops *ops = device->ops;
	const struct wlb_model *m = &p->shape;
	int64_t n = batch->tokens;
	struct wlb_attention_shape shape = wlb_attention_shape_of(m, n);

	ops->rmsnorm_forward(device, a->norm, a->rstd, a->input, wlb_weight(p, t->input_norm), n, m->hidden_size,
	                     m->rms_norm_eps);
	linear(p, a->q, a->norm, t->q, n, 0.0);
	linear(p, a->k, a->norm, t->k, n, 0.0);
	linear(p, a->v, a->norm, t->v, n, 0.0);
	ops->rope(device, a->q, batch->positions, n, shape.heads, shape.head_dim, m->rope_theta, +1);
	ops->rope(device, a->k, batch->positions, n, shape.kv_heads, shape.head_dim, m->rope_theta, +1);
	ops->attention_forward(device, a->attention, a->lse, a->q, a->k, a->v, &batch->segments, &shape);
	ops->copy(device, a->middle, a->input, (size_t)(n * m->hidden_size) * wlb_dtype_bytes(device->dtype));
	linear(p, a->middle, a->attention, t->o, n, 1.0);
}

/* out = middle + mlp(norm(middle)) */
static void mlp_block(const struct wlb_parameters *p, const struct wlb_layer_tensors *t,
                      const struct wlb_layer_activations *a, int64_t n, void *out)
{
	struct wlb_device *device = p->device;
	const struct wlb_ops *ops = device->ops;
	const struct wlb_model *m = &p->shape;

	ops->rmsnorm_forward(device, a->post_norm, a->post_rstd, a->middle, wlb_weight(p, t->post_norm), n,
	                     m->hidden_size, m->rms_norm_eps);
	linear(p, a->gate, a->post_norm, t->gate, n, 0.0);
	linear(p, a->up, a->post_norm, t->up, n, 0.0);
	ops->swiglu_forward(device, a->activated, a->gate, a->up, n * m->intermediate_size);
	ops->copy(device, out, a->middle, (size_t)(n * m->hidden_size) * wlb_dtype_bytes(device->dtype));
	linear(p, out, a->activated, t->down, n, 1.0);
}

void wlb_forward(const struct wlb_parameters *p, struct wlb_activations *a, const struct wlb_micro_batch *batch)
{
	struct wlb_device *device = p->device;
	const struct wlb_ops *ops = device->ops;
	const struct wlb_model *m = &p->shape;
	int64_t n = batch->tokens;

	ops->embedding_forward(device, a->layers[0].input, wlb_weight(p, p->embedding), batch->ids, n, m->hidden_size);
	for (int l = 0; l < a->num_layers; l++) {
		void *out = l + 1 < a->num_layers ? a->layers[l + 1].input : a->output;
		attention_block(p, &p->layers[l], &a->layers[l], batch);
		mlp_block(p, &p->layers[l], &a->layers[l], n, out);
	}
	ops->rmsnorm_forward(device, a->final_norm, a->final_rstd, a->output, wlb_weight(p, p->final_norm), n,
	                     m->hidden_size, m->rms_norm_eps);
	linear(p, a->logits, a->final_norm, p->head, n, 0.0);
}

void wlb_loss(const struct wlb_parameters *p, struct wlb_activations *a, const struct wlb_micro_batch *batch,
              double *loss_sum, double scale)
{
	p->device->ops->cross_entropy(p->device, loss_sum, a->logits, batch->targets, batch->tokens,
	                              p->shape.vocab_size, scale);
}

int wlb_transformer_check_device(const struct wlb_device *device, struct wlb_error *error)
{
	const struct wlb_ops *ops = device->ops;
	const struct {
		const char *name;
		int there;
	} needed[] = {
		{"gemm", ops->gemm != NULL},
		{"embedding_forward", ops->embedding_forward != NULL},
		{"embedding_backward", ops->embedding_backward != NULL},
		{"rmsnorm_forward", ops->rmsnorm_forward != NULL},
		{"rmsnorm_backward", ops->rmsnorm_backward != NULL},
		{"rope", ops->rope != NULL},
		{"attention_forward", ops->attention_forward != NULL},
		{"attention_backward", ops->attention_backward != NULL},
		{"swiglu_forward", ops->swiglu_forward != NULL},
		{"swiglu_backward", ops->swiglu_backward != NULL},
		{"cross_entropy", ops->cross_entropy != NULL},
		{"sum_squares", ops->sum_squares != NULL},
		{"adamw", ops->adamw != NULL},
	};
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!needed[i].there)
			return wlb_fail(error,
			                "device %s cannot train yet: it has no %s in this version; use --device cpu",
			                device->name, needed[i].name);
	return 0;
}

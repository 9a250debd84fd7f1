/*
 * One pass of the transformer over one micro-batch: forward (activations are kept), loss, backward (gradients
 * are added to those of the parameters). Reads like the paper: x + attention(norm(x)), then x + mlp(norm(x)).
 */
#ifndef WLB_TRANSFORMER_H
#define WLB_TRANSFORMER_H

#include "worker/micro_batch.h"
#include "worker/model.h"

/* What backward needs of one layer. T tokens, h hidden, q = heads x head_dim, kv = kv_heads x head_dim, f
 * intermediate. */
struct wlb_layer_activations {
	void *input;     /* [T, h] the residual stream as it comes in */
	void *norm;      /* [T, h] */
	void *rstd;      /* [T] */
	void *q;         /* [T, q] after RoPE */
	void *k;         /* [T, kv] after RoPE */
	void *v;         /* [T, kv] */
	void *attention; /* [T, q] */
	void *lse;       /* [T, heads] */
	void *middle;    /* [T, h] the residual stream after attention */
	void *post_norm; /* [T, h] */
	void *post_rstd; /* [T] */
	void *gate;      /* [T, f] */
	void *up;        /* [T, f] */
	void *activated; /* [T, f] */
};

/* Buffers for micro-batches of up to max_tokens, allocated once; all device memory. */
struct wlb_activations {
	struct wlb_device *device;
	int64_t max_tokens;
	int num_layers;
	void *block; /* everything below lies in it */
	struct wlb_layer_activations *layers;
	void *output;     /* [T, h] the residual stream after the last layer */
	void *final_norm; /* [T, h] */
	void *final_rstd; /* [T] */
	void *logits;     /* [T, vocab]; after the loss their gradient */
	/* gradients, one layer at a time */
	void *d_residual;  /* [T, h] */
	void *d_norm;      /* [T, h] */
	void *d_q;         /* [T, q] */
	void *d_k;         /* [T, kv] */
	void *d_v;         /* [T, kv] */
	void *d_attention; /* [T, q] */
	void *d_gate;      /* [T, f] */
	void *d_up;        /* [T, f] */
	void *d_activated; /* [T, f] */
};

/* NULL with the number of bytes that were not to be had. */
struct wlb_activations *wlb_activations_new(const struct wlb_model *shape, struct wlb_device *device,
                                            int64_t max_tokens, struct wlb_error *error);
void wlb_activations_free(struct wlb_activations *activations); /* NULL allowed */

/* Of one micro-batch, whole documents: as many keys as queries. */
static inline struct wlb_attention_shape wlb_attention_shape_of(const struct wlb_model *m, int64_t tokens)
{
	return (struct wlb_attention_shape){
		.q_tokens = tokens,
		.k_tokens = tokens,
		.heads = (int)m->num_attention_heads,
		.kv_heads = (int)m->num_key_value_heads,
		.head_dim = (int)m->head_dim,
	};
}

/* 0 when the device has every operation that training uses; -1 naming the first that is missing. */
int wlb_transformer_check_device(const struct wlb_device *device, struct wlb_error *error);

/* The batch must be uploaded and hold at least one token. Leaves the logits. */
void wlb_forward(const struct wlb_parameters *parameters, struct wlb_activations *activations,
                 const struct wlb_micro_batch *batch);
/* Adds the summed cross-entropy to *loss_sum (device) and turns the logits into their gradient, times scale. */
void wlb_loss(const struct wlb_parameters *parameters, struct wlb_activations *activations,
              const struct wlb_micro_batch *batch, double *loss_sum, double scale);
/* Adds the gradients of the batch to the parameters'. */
void wlb_backward(const struct wlb_parameters *parameters, struct wlb_activations *activations,
                  const struct wlb_micro_batch *batch);

#endif

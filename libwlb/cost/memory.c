/*
 * The memory that a GPU needs, after Korthikanti et al. (2022), "Reducing Activation Recomputation in Large Transformer
 * Models", for the layers of Llama: no dropout, a gated MLP, grouped keys and values. Sequence parallelism is on, so
 * that all activations of a layer are split over tp.
 */
#include "libwlb/layout/plan.h"

#include <math.h>

enum {
	WEIGHT_BYTES = 2,     /* bfloat16 */
	GRADIENT_BYTES = 4,   /* accumulated in float32 */
	OPTIMIZER_BYTES = 12, /* float32 master weight and Adam's two moments */
	ACTIVATION_BYTES = 2,
	LOGIT_BYTES = 6, /* bfloat16, and the float32 copy the loss is taken of */
	SCORE_BYTES = 5, /* of one query and key: scores and softmax, and what stood for dropout's mask in the paper */
	BUCKET_PARAMETERS = 40000000, /* of one gradient reduction in flight (Megatron-LM's default bucket) */
};

double wlb_plan_layer_matrices(const struct wlb_model *m)
{
	double hidden = (double)m->hidden_size;
	double q = (double)(m->num_attention_heads * m->head_dim);
	double kv = (double)(m->num_key_value_heads * m->head_dim);
	return hidden * (2.0 * q + 2.0 * kv) + 3.0 * hidden * (double)m->intermediate_size;
}

double wlb_plan_kv_width(const struct wlb_plan *plan, const struct wlb_model *m)
{
	int64_t tp = plan->layout.tp;
	/* Fewer heads than ranks: each rank holds a copy of one. */
	return (double)((m->num_key_value_heads + tp - 1) / tp * m->head_dim);
}

double wlb_plan_chunk_parameters(const struct wlb_plan *plan, const struct wlb_model *m, int32_t stage, int32_t chunk)
{
	double tp = (double)plan->layout.tp, hidden = (double)m->hidden_size;
	double layers = (double)wlb_plan_layers(plan, m, stage, chunk);
	double parameters = layers * (wlb_plan_layer_matrices(m) / tp + 2.0 * hidden);
	int first = stage == 0 && chunk == 0;
	int last = stage == plan->layout.pp - 1 && chunk == plan->interleave - 1;
	double table = (double)m->vocab_size * hidden / tp;
	if (first)
		parameters += table;
	if (last)
		parameters += hidden + (first && m->tie_word_embeddings ? 0.0 : table);
	return parameters;
}

/* Bytes that one layer keeps for the backward pass of one token, on all tensor-parallel ranks together. */
static double layer_token_bytes(const struct wlb_plan *plan, const struct wlb_model *m, int64_t longest)
{
	double hidden = (double)m->hidden_size;
	double q = (double)(m->num_attention_heads * m->head_dim);
	double kv = (double)(m->num_key_value_heads * m->head_dim);
	if (plan->recompute == WLB_RECOMPUTE_FULL)
		return ACTIVATION_BYTES * hidden;
	/* Inputs of both norms, of both projections that follow them; queries, keys, values and the attention's output;
	 * gate, up and their product. */
	double bytes = ACTIVATION_BYTES * (4.0 * hidden + 2.0 * q + 2.0 * kv + 3.0 * (double)m->intermediate_size);
	if (plan->recompute == WLB_RECOMPUTE_NONE)
		bytes += SCORE_BYTES * (double)m->num_attention_heads * (double)longest;
	return bytes;
}

/* Chunks whose activations a stage holds at once, at most: its warm-up and the one that follows. */
static int64_t chunks_in_flight(const struct wlb_plan *plan, int32_t stage)
{
	int64_t total = (int64_t)plan->micro_batches * plan->interleave;
	int64_t held = wlb_plan_warmup(plan, stage) + 1;
	return held < total ? held : total;
}

/* Layers of the stage's largest chunk: where the embedding is accounted for, its chunk has fewer. */
static int64_t most_layers(const struct wlb_plan *plan, const struct wlb_model *m, int32_t stage)
{
	int64_t first = wlb_plan_layers(plan, m, stage, 0);
	int64_t second = plan->interleave > 1 ? wlb_plan_layers(plan, m, stage, 1) : 0;
	return first > second ? first : second;
}

static double activation_bytes(const struct wlb_plan *plan, const struct wlb_model *m, int32_t stage,
                               double rank_tokens, int64_t longest)
{
	double tp = (double)plan->layout.tp, hidden = (double)m->hidden_size;
	int64_t layers = most_layers(plan, m, stage);
	double held = (double)chunks_in_flight(plan, stage) * (double)layers * rank_tokens *
	              layer_token_bytes(plan, m, longest) / tp;
	if (plan->recompute == WLB_RECOMPUTE_FULL) { /* the one layer that is being done again */
		struct wlb_plan once = *plan;
		once.recompute = WLB_RECOMPUTE_SELECTIVE;
		held += rank_tokens * layer_token_bytes(&once, m, longest) / tp;
	}
	if (stage == plan->layout.pp - 1)
		held += 2.0 * ACTIVATION_BYTES * rank_tokens * hidden / tp; /* of the last norm and the head */
	return held;
}

static double buffer_bytes(const struct wlb_plan *plan, const struct wlb_model *m, double tokens, double parameters)
{
	const struct wlb_layout *l = &plan->layout;
	double rank_tokens = tokens / l->cp, hidden = (double)m->hidden_size, bytes = 0.0;
	if (l->tp > 1) /* gathered input of a projection, and what is scattered after */
		bytes += 2.0 * ACTIVATION_BYTES * rank_tokens * hidden;
	if (l->cp > 1) /* keys and values of all ranks, and their gradients */
		bytes += 4.0 * ACTIVATION_BYTES * tokens * wlb_plan_kv_width(plan, m);
	if (l->pp > 1) /* received and sent, both ways */
		bytes += 4.0 * ACTIVATION_BYTES * rank_tokens * hidden / l->tp;
	if ((double)l->dp * l->cp > 1.0)
		bytes += 2.0 * GRADIENT_BYTES * fmin(parameters, BUCKET_PARAMETERS);
	return bytes;
}

struct wlb_memory wlb_memory_stage(const struct wlb_plan *plan, const struct wlb_model *model, int32_t stage,
                                   int64_t tokens, int64_t longest, double margin)
{
	struct wlb_memory memory = {0};
	double parameters = 0.0, shards = (double)plan->layout.dp * plan->layout.cp;
	for (int32_t chunk = 0; chunk < plan->interleave; chunk++)
		parameters += wlb_plan_chunk_parameters(plan, model, stage, chunk);
	double rank_tokens = (double)tokens / plan->layout.cp;
	memory.weights = WEIGHT_BYTES * parameters / (plan->zero_stage >= 3 ? shards : 1.0);
	memory.gradients = GRADIENT_BYTES * parameters / (plan->zero_stage >= 2 ? shards : 1.0);
	memory.optimizer = OPTIMIZER_BYTES * parameters / (plan->zero_stage >= 1 ? shards : 1.0);
	memory.activations = activation_bytes(plan, model, stage, rank_tokens, longest);
	if (stage == plan->layout.pp - 1)
		memory.logits = LOGIT_BYTES * rank_tokens * (double)model->vocab_size / plan->layout.tp;
	memory.buffers = buffer_bytes(plan, model, (double)tokens, parameters);
	if (plan->zero_stage >= 3) /* a layer's weights gathered, and the next one's */
		memory.buffers += 2.0 * WEIGHT_BYTES * wlb_plan_layer_matrices(model) / plan->layout.tp;
	double sum = memory.weights + memory.gradients + memory.optimizer + memory.activations + memory.logits +
	             memory.buffers;
	memory.margin = margin * sum;
	memory.total = sum + memory.margin;
	return memory;
}

/*
 * The memory that a GPU needs, after Korthikanti et al. (2022), "Reducing Activation Recomputation in Large Transformer
 * Models", for the layers of Llama: no dropout, a gated MLP, grouped keys and values. Sequence parallelism is on, so
 * that all activations of a layer are split over tp.
 */
#include "libwlb/cost/plan_sizes.h"
#include "libwlb/wlb.h"

#include <math.h>

enum {
	OPTIMIZER_BYTES = 12, /* float32 master weight and Adam's two moments */
	LOGIT_COPY_BYTES = 4, /* the float32 copy from which the loss is computed */
	SCORE_BYTES = 5, /* of one query and key: scores and softmax, and a byte that the paper counts for dropout */
	BUCKET_PARAMETERS = 40000000, /* of one gradient reduction in flight (Megatron-LM's default bucket) */
};

double wlb_plan_layer_matrix_parameters(const struct wlb_model *m)
{
	double hidden = (double)m->hidden_size;
	double q = (double)(m->num_attention_heads * m->head_dim);
	double kv = (double)(m->num_key_value_heads * m->head_dim);
	return hidden * (2.0 * q + 2.0 * kv) + 3.0 * hidden * (double)m->intermediate_size;
}

double wlb_plan_recomputed_layers(const struct wlb_plan *plan, const struct wlb_model *m, int32_t stage, int32_t chunk)
{
	double layers = (double)wlb_plan_layers(plan, m, stage, chunk);
	if (plan->recompute == WLB_RECOMPUTE_NONE)
		return 0.0;
	if (plan->recompute == WLB_RECOMPUTE_SELECTIVE || plan->recompute_layers == 0)
		return layers;
	return fmin(layers, plan->recompute_layers);
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
	double parameters = layers * (wlb_plan_layer_matrix_parameters(m) / tp + 2.0 * hidden);
	int first = stage == 0 && chunk == 0;
	int last = stage == plan->layout.pp - 1 && chunk == plan->interleave - 1;
	double table = (double)m->vocab_size * hidden / tp;
	if (first)
		parameters += table;
	if (last)
		parameters += hidden + (first && m->tie_word_embeddings ? 0.0 : table);
	return parameters;
}

/* The values that the memory of a stage depends on. */
struct stage_memory {
	const struct wlb_plan *plan;
	const struct wlb_model *model;
	const struct wlb_cost_options *options;
	double element_bytes;
	int worker;
};

/* Bytes that one layer keeps for the backward pass of one token, on all tensor-parallel ranks together. */
static double layer_token_bytes(const struct stage_memory *w, enum wlb_recompute recompute, int64_t longest)
{
	const struct wlb_model *m = w->model;
	double hidden = (double)m->hidden_size, mlp = (double)m->intermediate_size;
	double q = (double)(m->num_attention_heads * m->head_dim), kv = (double)(m->num_key_value_heads * m->head_dim);
	if (recompute == WLB_RECOMPUTE_FULL)
		return w->element_bytes * hidden;
	/* Inputs of both norms, of both projections that follow them; queries, keys, values and the attention's output;
	 * gate, up and their product. */
	double elements = 4.0 * hidden + 2.0 * q + 2.0 * kv + 3.0 * mlp;
	if (recompute == WLB_RECOMPUTE_SELECTIVE && (w->worker || w->options->release_activations))
		elements -= 2.0 * hidden + mlp;
	double bytes = w->element_bytes * elements;
	if (recompute == WLB_RECOMPUTE_NONE && !w->worker)
		bytes += SCORE_BYTES * (double)m->num_attention_heads * (double)longest;
	return bytes;
}

/* Returns the most chunks whose activations a stage holds at once: those of its warm-up and the one that follows. */
static int64_t chunks_in_flight(const struct wlb_plan *plan, int32_t stage)
{
	int64_t total = (int64_t)plan->micro_batches * plan->interleave;
	int64_t held = wlb_plan_warmup(plan, stage) + 1;
	return held < total ? held : total;
}

/* Returns the stage's chunk with the most layers. Where the embedding counts as a layer, its chunk has fewer. */
static int32_t largest_chunk(const struct stage_memory *w, int32_t stage)
{
	if (w->plan->interleave == 1)
		return 0;
	return wlb_plan_layers(w->plan, w->model, stage, 1) > wlb_plan_layers(w->plan, w->model, stage, 0);
}

/* Bytes of all layers of the largest chunk, for a token. */
static double chunk_token_bytes(const struct stage_memory *w, int32_t stage, int64_t longest)
{
	const struct wlb_plan *plan = w->plan;
	int32_t chunk = largest_chunk(w, stage);
	double layers = (double)wlb_plan_layers(plan, w->model, stage, chunk);
	if (plan->recompute != WLB_RECOMPUTE_FULL)
		return layers * layer_token_bytes(w, plan->recompute, longest);
	double recomputed_layers = wlb_plan_recomputed_layers(plan, w->model, stage, chunk);
	return recomputed_layers * layer_token_bytes(w, WLB_RECOMPUTE_FULL, longest) +
	       (layers - recomputed_layers) * layer_token_bytes(w, WLB_RECOMPUTE_SELECTIVE, longest);
}

static double activation_bytes(const struct stage_memory *w, int32_t stage, double rank_tokens, int64_t longest)
{
	const struct wlb_plan *plan = w->plan;
	double tp = (double)plan->layout.tp, hidden = (double)w->model->hidden_size;
	double chunks = (double)chunks_in_flight(plan, stage), share = rank_tokens / tp;
	double held = chunks * share * chunk_token_bytes(w, stage, longest);
	if (plan->recompute == WLB_RECOMPUTE_FULL) /* the one layer that is being recomputed */
		held += share * layer_token_bytes(w, WLB_RECOMPUTE_SELECTIVE, longest);
	if (w->options->keep_outputs)
		held += chunks * share * w->element_bytes * hidden;
	if (stage == plan->layout.pp - 1)
		held += 2.0 * share * w->element_bytes * hidden; /* of the last norm and the head */
	return held;
}

static double buffer_bytes(const struct stage_memory *w, double tokens, double parameters)
{
	const struct wlb_layout *l = &w->plan->layout;
	double rank_tokens = tokens / l->cp, hidden = (double)w->model->hidden_size, elements = 0.0, bytes = 0.0;
	if (l->tp > 1) /* gathered input of a projection, and what is scattered after */
		elements += 2.0 * rank_tokens * hidden;
	if (w->worker) /* angles of the rotary embeddings */
		elements += rank_tokens * (double)w->model->head_dim;
	if (l->cp > 1) /* keys and values of all ranks, and their gradients */
		elements += 4.0 * tokens * wlb_plan_kv_width(w->plan, w->model);
	if (l->pp > 1) /* received and sent, both ways */
		elements += 4.0 * rank_tokens * hidden / l->tp;
	if ((double)l->dp * l->cp > 1.0)
		bytes += 2.0 * w->options->gradient_bytes * fmin(parameters, BUCKET_PARAMETERS);
	if (w->plan->zero_stage >= 3) /* a layer's weights gathered, and the next one's */
		elements += 2.0 * wlb_plan_layer_matrix_parameters(w->model) / l->tp;
	return bytes + w->element_bytes * elements;
}

struct wlb_memory wlb_memory_stage_of(const struct wlb_plan *plan, const struct wlb_model *model,
                                      const struct wlb_machine *machine, const struct wlb_cost_options *options,
                                      int32_t stage, int64_t tokens, int64_t longest, double margin)
{
	struct wlb_memory memory = {0};
	const struct stage_memory w = {plan, model, options, wlb_machine_element_bytes(machine),
	                               options->trainer == WLB_COST_WORKER};
	double parameters = 0.0, shards = (double)plan->layout.dp * plan->layout.cp;
	for (int32_t chunk = 0; chunk < plan->interleave; chunk++)
		parameters += wlb_plan_chunk_parameters(plan, model, stage, chunk);
	double rank_tokens = (double)tokens / plan->layout.cp;
	double optimizer = w.worker ? 2.0 * w.element_bytes : OPTIMIZER_BYTES;
	memory.weights = w.element_bytes * parameters / (plan->zero_stage >= 3 ? shards : 1.0);
	memory.gradients = options->gradient_bytes * parameters / (plan->zero_stage >= 2 ? shards : 1.0);
	memory.optimizer = optimizer * parameters / (plan->zero_stage >= 1 ? shards : 1.0);
	memory.activations = activation_bytes(&w, stage, rank_tokens, longest);
	if (stage == plan->layout.pp - 1)
		memory.logits = (w.element_bytes + (w.worker ? 0.0 : LOGIT_COPY_BYTES)) * rank_tokens *
		                (double)model->vocab_size / plan->layout.tp;
	memory.buffers = buffer_bytes(&w, (double)tokens, parameters);
	double sum = memory.weights + memory.gradients + memory.optimizer + memory.activations + memory.logits +
	             memory.buffers;
	memory.margin = margin * sum;
	memory.total = sum + memory.margin;
	return memory;
}

struct wlb_memory wlb_memory_stage(const struct wlb_plan *plan, const struct wlb_model *model, int32_t stage,
                                   int64_t tokens, int64_t longest, double margin)
{
	const struct wlb_machine bfloat16 = {.element_bytes = 2};
	struct wlb_cost_options options;
	wlb_cost_options_init(&options);
	return wlb_memory_stage_of(plan, model, &bfloat16, &options, stage, tokens, longest, margin);
}

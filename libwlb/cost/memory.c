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
	LOGIT_BYTES = 512 << 20, /* of the logits that wlb-worker has at once */
	LEAST_LOGIT_ROWS = 128,
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
	int is_last = stage == plan->layout.pp - 1 && chunk == plan->interleave - 1;
	int has_head = is_last || (plan->shared_head && chunk == plan->interleave - 1);
	double table = (double)m->vocab_size * hidden / tp;
	if (stage == 0 && chunk == 0)
		parameters += table;
	if (is_last)
		parameters += hidden;
	if (has_head && !(stage == 0 && m->tie_word_embeddings))
		parameters += table;
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

/* Returns the most chunks whose activations a stage holds at once: those of its warm-up and the one that follows; in
 * wlb-worker also one whose output or gradient is still being sent. */
static int64_t chunks_in_flight(const struct stage_memory *w, int32_t stage)
{
	int64_t total = (int64_t)w->plan->micro_batches * w->plan->interleave;
	int64_t held = wlb_plan_warmup(w->plan, stage) + 1 + (w->worker && w->plan->layout.pp > 1);
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

/* Elements that wlb-worker has once for all layers and uses in no other pass: the gradients of a layer's activations,
 * but for that of the norm's output, and the angles of the rotary embeddings. */
static double layer_elements(const struct stage_memory *w, double rank_tokens)
{
	const struct wlb_model *m = w->model;
	double tp = (double)w->plan->layout.tp, q = (double)(m->num_attention_heads * m->head_dim) / tp;
	return rank_tokens * (2.0 * q + 2.0 * wlb_plan_kv_width(w->plan, m) + 3.0 * (double)m->intermediate_size / tp +
	                      (double)m->head_dim);
}

/* Elements that wlb-worker has once for all layers: those, and what each layer computes again for the time of its
 * backward pass. */
static double shared_elements(const struct stage_memory *w, double tokens, double rank_tokens)
{
	const struct wlb_model *m = w->model;
	double tp = (double)w->plan->layout.tp, kv = wlb_plan_kv_width(w->plan, m);
	double hidden = (double)m->hidden_size / tp, mlp = (double)m->intermediate_size / tp;
	double elements = rank_tokens * hidden + layer_elements(w, rank_tokens);
	if (w->plan->recompute != WLB_RECOMPUTE_NONE)
		elements += rank_tokens * (2.0 * hidden + mlp) + (w->plan->layout.cp > 1 ? 2.0 * tokens * kv : 0.0);
	return elements;
}

static double activation_bytes(const struct stage_memory *w, int32_t stage, double rank_tokens, int64_t longest)
{
	const struct wlb_plan *plan = w->plan;
	double tp = (double)plan->layout.tp, hidden = (double)w->model->hidden_size;
	double chunks = (double)chunks_in_flight(w, stage), share = rank_tokens / tp;
	double held = chunks * share * chunk_token_bytes(w, stage, longest);
	if (w->worker && plan->layout.cp > 1 && plan->recompute == WLB_RECOMPUTE_NONE)
		held += chunks * (double)wlb_plan_layers(plan, w->model, stage, largest_chunk(w, stage)) *
		        plan->layout.cp * rank_tokens * 2.0 * wlb_plan_kv_width(plan, w->model) * w->element_bytes;
	if (plan->recompute ==
	    WLB_RECOMPUTE_FULL) /* the one layer that is being recomputed, in wlb-worker but its input */
		held += share * (layer_token_bytes(w, WLB_RECOMPUTE_SELECTIVE, longest) -
		                 (w->worker ? w->element_bytes * hidden : 0.0));
	if (w->options->keep_outputs)
		held += chunks * share * w->element_bytes * hidden;
	if (stage == plan->layout.pp - 1)
		held += (w->worker ? 1.0 : 2.0) * share * w->element_bytes * hidden; /* of the last norm and the head */
	/* Normed rows, kept until their gradient has arrived; on the other stages a share of them, and its gradient. */
	if (plan->shared_head)
		held += share * w->element_bytes * hidden *
		        (stage == plan->layout.pp - 1 ? chunks + 1.0 : 2.0 / plan->layout.pp);
	return held;
}

static double buffer_bytes(const struct stage_memory *w, double tokens, double parameters)
{
	const struct wlb_layout *l = &w->plan->layout;
	double rank_tokens = tokens / l->cp, hidden = (double)w->model->hidden_size, elements = 0.0, bytes = 0.0;
	if (l->tp > 1) /* gathered input of a projection, and what is scattered after */
		elements += 2.0 * rank_tokens * hidden;
	if (w->worker)
		elements += shared_elements(w, tokens, rank_tokens);
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

int64_t wlb_logit_rows(int64_t rows, int64_t vocab_size, int32_t tp, int64_t element_bytes)
{
	int64_t row_bytes = (vocab_size + tp - 1) / tp * element_bytes;
	int64_t most = LOGIT_BYTES / (row_bytes > 0 ? row_bytes : 1);
	most = most > LEAST_LOGIT_ROWS ? most : LEAST_LOGIT_ROWS;
	return rows < most ? rows : most;
}

/* Bytes of the logits of the rows that are computed at a time: all in Megatron-LM. wlb-worker has them where the
 * gradients of a layer's activations are at other times, which other bytes count: here it is what they are more. */
static double logit_bytes(const struct stage_memory *w, double rank_tokens)
{
	const struct wlb_model *m = w->model;
	int32_t tp = w->plan->layout.tp;
	double rows = w->plan->shared_head ? rank_tokens / ((double)tp * w->plan->layout.pp) : rank_tokens;
	double width = (double)m->vocab_size / tp;
	if (!w->worker)
		return (w->element_bytes + LOGIT_COPY_BYTES) * rows * width;
	rows = (double)wlb_logit_rows((int64_t)ceil(rows), m->vocab_size, tp, (int64_t)w->element_bytes);
	return w->element_bytes * fmax(0.0, rows * width - layer_elements(w, rank_tokens));
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
	/* wlb-worker has no masters where the weights in use are of 4 bytes or more. */
	double optimizer = w.worker && w.element_bytes >= 4.0 ? 2.0 * w.element_bytes : OPTIMIZER_BYTES;
	memory.weights = w.element_bytes * parameters / (plan->zero_stage >= 3 ? shards : 1.0);
	memory.gradients = options->gradient_bytes * parameters / (plan->zero_stage >= 2 ? shards : 1.0);
	memory.optimizer = optimizer * parameters / (plan->zero_stage >= 1 ? shards : 1.0);
	memory.activations = activation_bytes(&w, stage, rank_tokens, longest);
	if (stage == plan->layout.pp - 1 || plan->shared_head)
		memory.logits = logit_bytes(&w, rank_tokens);
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

/*
 * The memory that a GPU needs, after Korthikanti et al. (2022), "Reducing Activation Recomputation in Large Transformer
 * Models", for the layers of Llama: no dropout, a gated MLP, grouped keys and values. Sequence parallelism is on, so
 * that all activations of a layer are split over tp. What wlb-worker needs is in worker_memory.c.
 */
#include <math.h>

#include "libwlb/cost/plan_sizes.h"
#include "libwlb/cost/worker_memory.h"
#include "libwlb/wlb.h"

enum {
	/* Gradients that were summed in bfloat16, copied for moments of float32: Megatron-LM,
	 * docs/source/api-guide/dist_optimizer.md, 4 + 16 / d bytes a parameter in place of 6 + 12 / d. They are there
	 * from the end of the last backward pass to the next step's zero_grad (core/optimizer/distrib_optimizer.py),
	 * when no activations are, a tensor for each parameter. DeepSpeed's are one tensor (runtime/zero/
	 * stage_1_and_2.py), for which the allocator has no space in what activations leave: beside them. */
	MASTER_GRADIENT_BYTES = 4,
	FLOAT32_STATES_BYTES = 12, /* master weight and Adam's two moments */
	SCORE_BYTES = 5, /* of one query and key: scores and softmax, and a byte that the paper counts for dropout */
	/* The same of transformers 5.24, eager attention of Llama: the softmax in float32 and its copy in bfloat16, as
	 * torch.autograd.graph.saved_tensors_hooks shows. */
	EAGER_SCORE_BYTES = 6,
	BUCKET_PARAMETERS = 40000000, /* of one gradient reduction in flight (Megatron-LM's default bucket) */
	/* That NCCL allocates for a communicator of more than two ranks: github.com/NVIDIA/nccl/issues/964, 4 A100. */
	COMMUNICATOR_BYTES = 688 << 20,
};

/* An element in 8 bits, and its share of a byte of scale (Transformer Engine, constants.py: MXFP8_BLOCK_SCALING_SIZE).
 */
static const double mxfp8_bytes = 1.0 + 1.0 / 32.0;

/* The values that the memory of a stage depends on. */
struct stage_memory {
	const struct wlb_plan *plan;
	const struct wlb_model *model;
	const struct wlb_machine *machine;
	const struct wlb_cost_options *options;
	double element_bytes;
};

/* Bytes of the scores of one token and layer, on all tensor-parallel ranks together, where attention is not fused, and
 * of the copies of keys and values that each head has then. */
static double score_token_bytes(const struct stage_memory *w, int64_t longest)
{
	const struct wlb_model *m = w->model;
	double heads = (double)m->num_attention_heads, groups = (double)m->num_key_value_heads;
	if (!w->options->unfused_attention)
		return 0.0;
	if (!w->options->eager)
		return SCORE_BYTES * heads * (double)longest;
	double copies = heads > groups ? 2.0 * (heads - groups) * (double)m->head_dim : 0.0;
	return EAGER_SCORE_BYTES * heads * (double)longest + w->element_bytes * copies;
}

/* Elements of the rows that experts get of a token: each tensor-parallel rank has a whole one for each expert. */
static double expert_rows(const struct stage_memory *w)
{
	const struct wlb_model *m = w->model;
	return m->num_experts > 0 ? wlb_plan_token_experts(m) * (double)m->hidden_size * w->plan->layout.tp : 0.0;
}

/* The rows that experts get and, where they are weighted after it, those that they give. */
static double kept_rows(const struct stage_memory *w)
{
	return (w->options->weighted_experts ? 1.0 : 2.0) * expert_rows(w);
}

/* Elements that one layer does not keep of a token since `modules` recompute them, beside the outputs of norms and
 * gated products: what passes the gate, the rows of experts, queries, keys and values, of which there are so many. */
static double module_elements(const struct stage_memory *w, unsigned modules, double queries_keys_values)
{
	const struct wlb_model *m = w->model;
	unsigned whole = modules & (WLB_RECOMPUTE_MLP | WLB_RECOMPUTE_MOE | WLB_RECOMPUTE_SHARED_EXPERTS);
	double gates = wlb_family(m->family)->ungated ? 1.0 : 2.0;
	double elements = gates * wlb_plan_mlp_columns_again(m, whole);
	if (modules & WLB_RECOMPUTE_MOE)
		elements += kept_rows(w);
	return modules & WLB_RECOMPUTE_MLA_UP_PROJ ? elements + queries_keys_values : elements;
}

/* Bytes that one layer keeps for the backward pass of one token, on all tensor-parallel ranks together. */
static double layer_token_bytes(const struct stage_memory *w, enum wlb_recompute recompute, int64_t longest)
{
	const struct wlb_model *m = w->model;
	double hidden = (double)m->hidden_size * (w->options->whole_rows ? w->plan->layout.tp : 1),
	       mlp = wlb_plan_mlp_columns(m);
	double head = (double)wlb_model_head_width(m);
	double q = (double)m->num_attention_heads * head, kv = (double)m->num_key_value_heads * head;
	if (recompute == WLB_RECOMPUTE_FULL)
		return w->element_bytes * hidden;
	/* Inputs of both norms, of both projections that follow them; queries, keys, values and the attention's output;
	 * gate, up and their product, or without a gate two of them. */
	int gated = !wlb_family(m->family)->ungated;
	double elements = 4.0 * hidden + 2.0 * q + 2.0 * kv + (gated ? 3.0 : 2.0) * mlp;
	if (w->options->eager) /* both norms: the input in float32, and what is multiplied by their weight */
		elements += 4.0 * hidden + (gated ? mlp : 0.0);
	if (wlb_family(m->family)->qk_norm != WLB_QK_NORM_NONE) /* queries and keys before their norms */
		elements += q + kv;
	elements += kept_rows(w);
	/* What latent attention makes queries, keys and values of, on each tensor-parallel rank. */
	elements += (double)(m->q_lora_rank + m->kv_lora_rank + m->qk_rope_head_dim) * w->plan->layout.tp;
	if (wlb_family(m->family)->norms == WLB_NORMS_BOTH) /* what attention and MLP gave, before their norms */
		elements += 2.0 * hidden;
	unsigned modules = wlb_plan_modules(recompute, w->options);
	double norms = modules & WLB_RECOMPUTE_LAYERNORM ? 2.0 * hidden : 0.0;
	double products = wlb_plan_mlp_columns_again(m, modules);
	elements -= norms + products + module_elements(w, modules, q + 2.0 * kv);
	double bytes = w->element_bytes * elements;
	/* Attention's output is kept both for attention and, in 8 bits, for the product after it; with experts the rows
	 * of the second norm are kept for the product that chooses them, and theirs in 8 bits. */
	double normed = modules & WLB_RECOMPUTE_LAYERNORM ? 0.0 : m->num_experts > 0 ? hidden : 2.0 * hidden;
	normed += modules & WLB_RECOMPUTE_MOE ? 0.0 : expert_rows(w);
	double input_bytes = w->options->fp8 == WLB_FP8_MXFP8 ? mxfp8_bytes : 1.0;
	if (w->options->fp8 != WLB_FP8_NONE && w->options->fp8_inputs)
		bytes += input_bytes * q - (w->element_bytes - input_bytes) * (normed + mlp - products);
	int scores = (recompute & (WLB_RECOMPUTE_SELECTIVE | WLB_RECOMPUTE_CORE_ATTN)) == 0;
	return scores ? bytes + score_token_bytes(w, longest) : bytes;
}

/* Bytes of all layers of a chunk, for a token. */
static double chunk_token_bytes(const struct stage_memory *w, int32_t stage, int32_t chunk, int64_t longest)
{
	const struct wlb_plan *plan = w->plan;
	double layers = (double)wlb_plan_layers(plan, w->model, stage, chunk);
	if (plan->recompute != WLB_RECOMPUTE_FULL)
		return layers * layer_token_bytes(w, plan->recompute, longest);
	double recomputed_layers = wlb_plan_recomputed_layers(plan, w->model, stage, chunk);
	return recomputed_layers * layer_token_bytes(w, WLB_RECOMPUTE_FULL, longest) +
	       (layers - recomputed_layers) * layer_token_bytes(w, WLB_RECOMPUTE_SELECTIVE, longest);
}

/* Bytes of all chunks in flight, for a token of each. Where the embedding counts as a layer, the first of them, of
 * which the most are in flight, has a layer less than the others. */
static double chunks_token_bytes(const struct stage_memory *w, int32_t stage, int64_t longest)
{
	int32_t largest = wlb_plan_largest_chunk(w->plan, w->model, stage);
	double largest_bytes = chunk_token_bytes(w, stage, largest, longest);
	double bytes = (double)wlb_plan_in_flight(w->plan, stage) * largest_bytes;
	if (largest > 0)
		bytes -= (double)wlb_plan_first_in_flight(w->plan, stage) *
		         (largest_bytes - chunk_token_bytes(w, stage, 0, longest));
	return bytes;
}

static double activation_bytes(const struct stage_memory *w, int32_t stage, double rank_tokens, int64_t longest)
{
	const struct wlb_plan *plan = w->plan;
	double hidden = (double)w->model->hidden_size, share = rank_tokens / plan->layout.tp;
	double in_flight = (double)wlb_plan_in_flight(plan, stage);
	double bytes = share * chunks_token_bytes(w, stage, longest);
	if (plan->recompute == WLB_RECOMPUTE_FULL) /* the one layer that is being recomputed */
		bytes += share * layer_token_bytes(w, WLB_RECOMPUTE_SELECTIVE, longest);
	if (plan->recompute == WLB_RECOMPUTE_FULL || plan->recompute == WLB_RECOMPUTE_SELECTIVE) /* their scores */
		bytes += share * score_token_bytes(w, longest);
	else /* what modules recompute of one layer */
		bytes += share * (layer_token_bytes(w, WLB_RECOMPUTE_NONE, longest) -
		                  layer_token_bytes(w, plan->recompute, longest));
	if (w->options->keep_outputs)
		bytes += in_flight * share * w->element_bytes * hidden;
	if (stage == plan->layout.pp - 1)
		bytes += 2.0 * share * w->element_bytes * hidden; /* of the last norm and the head */
	/* Normed rows, kept until their gradient has arrived; on the other stages a share of them, and its gradient. */
	if (plan->shared_head)
		bytes += share * w->element_bytes * hidden *
		         (stage == plan->layout.pp - 1 ? in_flight + 1.0 : 2.0 / plan->layout.pp);
	return bytes;
}

/* Parameters of the matrices of a layer that are on a rank, or are gathered there, of all tensor-parallel ranks. */
static double layer_matrices(const struct stage_memory *w)
{
	double experts = (double)(w->model->num_experts * wlb_model_expert_parameters(w->model));
	return (double)wlb_model_layer_matrix_parameters(w->model) - experts + experts / wlb_plan_expert_ranks(w->plan);
}

static double buffer_bytes(const struct stage_memory *w, double tokens, double parameters)
{
	const struct wlb_layout *l = &w->plan->layout;
	double rank_tokens = tokens / l->cp, hidden = (double)w->model->hidden_size, elements = 0.0, bytes = 0.0;
	if (l->tp > 1) /* gathered input of a projection, and what is scattered after */
		elements += 2.0 * rank_tokens * hidden;
	if (l->cp > 1) /* keys and values of all ranks, and their gradients */
		elements += 4.0 * tokens * wlb_plan_kv_width(w->plan, w->model);
	if (l->pp > 1) /* received and sent, both ways */
		elements += 4.0 * rank_tokens * hidden / l->tp;
	if ((double)l->dp * l->cp > 1.0)
		bytes += 2.0 * w->options->gradient_bytes * fmin(parameters, BUCKET_PARAMETERS);
	if (w->plan->zero_stage >= 3) /* a layer's weights gathered, and the next one's */
		elements += 2.0 * layer_matrices(w) / l->tp;
	return bytes + w->element_bytes * elements;
}

/* Bytes of the logits of all rows whose head the stage computes. */
static double logit_bytes(const struct stage_memory *w, int32_t stage, double rank_tokens)
{
	const struct wlb_layout *l = &w->plan->layout;
	if (stage < l->pp - 1 && !w->plan->shared_head)
		return 0.0;
	double rows = w->plan->shared_head ? rank_tokens / ((double)l->tp * l->pp) : rank_tokens;
	return w->options->logit_bytes * rows * (double)w->model->vocab_size / l->tp;
}

/* Bytes of a weight in 8 bits as products read it: forward, and transposed backward, for which Hopper needs a copy and
 * what came after it does not (Transformer Engine, pytorch/utils.py: is_non_tn_fp8_gemm_supported). With scales of 32
 * elements it is scaled along either dimension. Machines with such products are the later ones. */
static double cast_bytes(const struct stage_memory *w)
{
	if (w->options->fp8 == WLB_FP8_MXFP8)
		return 2.0 * mxfp8_bytes;
	return w->machine->mxfp8_rate > 0.0 ? 1.0 : 2.0;
}

/* Weights of a stage in use, of which the rank has a shard with ZeRO-3. The buffers then have those of two layers. */
static double weight_bytes(const struct stage_memory *w, int32_t stage, double parameters, double shard)
{
	if (w->plan->zero_stage >= 3)
		return w->element_bytes * shard;
	double bytes = w->element_bytes * parameters;
	double casts = cast_bytes(w) - (w->options->fp8_parameters ? w->element_bytes : 0.0);
	return w->options->fp8 == WLB_FP8_NONE ? bytes
	                                       : bytes + casts * wlb_plan_stage_matrices(w->plan, w->model, stage);
}

/* Weights, gradients and states of the optimizer, and the shares of them that a rank has. */
static void set_states(const struct stage_memory *w, int32_t stage, double parameters, struct wlb_memory *memory)
{
	const struct wlb_plan *plan = w->plan;
	const struct wlb_cost_options *o = w->options;
	double shard = wlb_plan_shard(plan, parameters, wlb_plan_stage_experts(plan, w->model, stage));
	double gradient = o->gradient_bytes, states = o->optimizer_bytes;
	double updated = plan->zero_stage >= 1 ? shard : parameters;
	double passes = o->keep_gradients ? 0.0 : memory->activations + memory->logits;
	int masters_alone = plan->zero_stage >= 3 && o->gather_masters;
	if (o->keep_gradients && gradient > w->element_bytes)
		gradient += w->element_bytes;
	if (masters_alone) /* of one type, as the masters and both moments are */
		gradient = states / 3.0;
	memory->weights = masters_alone ? 0.0 : weight_bytes(w, stage, parameters, shard);
	memory->gradients = gradient * (plan->zero_stage >= 2 ? shard : parameters);
	memory->optimizer = states * updated;
	if (!masters_alone && gradient < MASTER_GRADIENT_BYTES && states >= FLOAT32_STATES_BYTES)
		memory->optimizer += fmax(0.0, MASTER_GRADIENT_BYTES * updated - passes);
}

static struct wlb_memory megatron_memory(const struct stage_memory *w, int32_t stage, int64_t tokens, int64_t longest)
{
	const struct wlb_plan *plan = w->plan;
	double parameters = wlb_plan_stage_parameters(plan, w->model, stage);
	double rank_tokens = (double)tokens / plan->layout.cp;
	struct wlb_memory memory = {
		.activations = activation_bytes(w, stage, rank_tokens, longest),
		.logits = logit_bytes(w, stage, rank_tokens),
		.buffers = buffer_bytes(w, (double)tokens, parameters),
	};
	set_states(w, stage, parameters, &memory);
	return memory;
}

/* Bytes of a GPU that a rank does not allocate itself; ranks that talk by MPI run on CPUs. */
static double runtime_bytes(const struct wlb_plan *plan, const struct wlb_machine *machine,
                            const struct wlb_cost_options *options)
{
	const struct wlb_layout *l = &plan->layout;
	int communicators = (l->tp > 1) + (l->cp > 1) + (l->pp > 1) + (l->dp * l->cp > 1);
	/* Those of each other number of ranks that a document may be on. */
	for (int32_t ranks = plan->dynamic_cp > 0 ? l->dp * l->cp : 1; ranks > 1; ranks = wlb_dynamic_cp_smaller(ranks))
		communicators += ranks != l->cp;
	return machine->blocking_messages ? 0.0 : options->context_bytes + (double)COMMUNICATOR_BYTES * communicators;
}

struct wlb_memory wlb_memory_stage_of(const struct wlb_plan *plan, const struct wlb_model *model,
                                      const struct wlb_machine *machine, const struct wlb_cost_options *options,
                                      int32_t stage, int64_t tokens, int64_t longest)
{
	const struct stage_memory w = {plan, model, machine, options, wlb_machine_element_bytes(machine)};
	struct wlb_memory memory =
		options->trainer == WLB_COST_WORKER
			? wlb_worker_memory(plan, model, w.element_bytes, options->gradient_bytes, stage, tokens)
			: megatron_memory(&w, stage, tokens, longest);
	memory.allocated = memory.weights + memory.gradients + memory.optimizer + memory.activations + memory.logits +
	                   memory.buffers;
	memory.fragmentation = options->fragmentation * memory.allocated;
	memory.runtime = runtime_bytes(plan, machine, options);
	memory.reserved = memory.allocated + memory.fragmentation + memory.runtime;
	return memory;
}

struct wlb_memory wlb_memory_stage(const struct wlb_plan *plan, const struct wlb_model *model, int32_t stage,
                                   int64_t tokens, int64_t longest)
{
	const struct wlb_machine bfloat16 = {.element_bytes = 2};
	struct wlb_cost_options options;
	wlb_cost_options_init(&options);
	return wlb_memory_stage_of(plan, model, &bfloat16, &options, stage, tokens, longest);
}

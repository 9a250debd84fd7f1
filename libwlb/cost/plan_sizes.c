#include "libwlb/cost/plan_sizes.h"

#include <math.h>

double wlb_plan_recomputed_layers(const struct wlb_plan *plan, const struct wlb_model *m, int32_t stage, int32_t chunk)
{
	double layers = (double)wlb_plan_layers(plan, m, stage, chunk);
	if (plan->recompute == WLB_RECOMPUTE_NONE)
		return 0.0;
	if (plan->recompute == WLB_RECOMPUTE_SELECTIVE || plan->recompute_layers == 0)
		return layers;
	return fmin(layers, plan->recompute_layers);
}

double wlb_plan_token_experts(const struct wlb_model *m)
{
	return m->num_experts > 0 ? wlb_model_expert_layers_share(m) * (double)m->num_experts_per_tok : 1.0;
}

double wlb_plan_mlp_columns(const struct wlb_model *m)
{
	double share = wlb_model_expert_layers_share(m);
	if (m->num_experts == 0)
		return (double)m->intermediate_size;
	return share * (double)(m->num_experts_per_tok * m->intermediate_size + m->shared_intermediate_size) +
	       (1.0 - share) * (double)m->dense_intermediate_size;
}

unsigned wlb_plan_modules(enum wlb_recompute set, const struct wlb_cost_options *options)
{
	if (set != WLB_RECOMPUTE_SELECTIVE && set != WLB_RECOMPUTE_FULL)
		return set;
	if (options->trainer == WLB_COST_WORKER)
		return WLB_RECOMPUTE_LAYERNORM;
	return options->release_activations ? WLB_RECOMPUTE_LAYERNORM | WLB_RECOMPUTE_ACT : 0;
}

double wlb_plan_mlp_columns_again(const struct wlb_model *m, unsigned modules)
{
	double share = wlb_model_expert_layers_share(m);
	int64_t dense = m->num_experts == 0 ? m->intermediate_size : m->dense_intermediate_size;
	int64_t experts = m->num_experts_per_tok * m->intermediate_size, shared = m->shared_intermediate_size;
	if (!(modules & (WLB_RECOMPUTE_ACT | WLB_RECOMPUTE_MOE | WLB_RECOMPUTE_MOE_ACT)))
		experts = 0;
	if (!(modules & (WLB_RECOMPUTE_ACT | WLB_RECOMPUTE_MOE | WLB_RECOMPUTE_SHARED_EXPERTS)))
		shared = 0;
	if (!(modules & (WLB_RECOMPUTE_ACT | WLB_RECOMPUTE_MLP)))
		dense = 0;
	return share * (double)(experts + shared) + (1.0 - share) * (double)dense;
}

double wlb_plan_kv_width(const struct wlb_plan *plan, const struct wlb_model *m)
{
	int64_t tp = plan->layout.tp;
	/* Fewer heads than ranks: each rank holds a copy of one. */
	return (double)((m->num_key_value_heads + tp - 1) / tp * wlb_model_head_width(m));
}

/* Norms and biases of a layer on a tensor-parallel rank: those of queries, keys and values are cut as their matrices
 * are, unless they are norms of single heads. */
static double vector_parameters(const struct wlb_plan *plan, const struct wlb_model *m)
{
	const struct wlb_family_row *family = wlb_family(m->family);
	double q = (double)(m->num_attention_heads * m->head_dim) / plan->layout.tp, kv = wlb_plan_kv_width(plan, m);
	double parameters = (family->norms == WLB_NORMS_BOTH ? 4.0 : 2.0) * (double)wlb_model_norm_parameters(m);
	if (family->qkv_biases)
		parameters += q + 2.0 * kv;
	if (family->qk_norm == WLB_QK_NORM_HEAD)
		parameters += 2.0 * (double)m->head_dim;
	if (family->qk_norm == WLB_QK_NORM_ALL)
		parameters += q + kv;
	if (family->all_biases)
		parameters += (double)(m->hidden_size + m->num_experts + wlb_model_expert_biases(m)) +
		              (double)m->num_attention_heads / plan->layout.tp;
	return parameters + (double)(m->q_lora_rank + m->kv_lora_rank);
}

static double all_experts(const struct wlb_model *m)
{
	return (double)(m->num_experts * wlb_model_expert_parameters(m));
}

/* Parameters of the matrices of a layer but those of experts, on a tensor-parallel rank. */
static double layer_matrices(const struct wlb_plan *plan, const struct wlb_model *m, int has_experts)
{
	double tp = (double)plan->layout.tp, whole = (double)wlb_model_layer_whole_parameters(m, has_experts);
	/* Fewer heads than ranks: see wlb_plan_kv_width. */
	double kv_copies = wlb_plan_kv_width(plan, m) - (double)(m->num_key_value_heads * wlb_model_head_width(m)) / tp;
	double matrices = has_experts ? (double)wlb_model_layer_matrix_parameters(m) - all_experts(m)
	                              : (double)wlb_model_dense_layer_parameters(m);
	return (matrices - whole) / tp + whole + 2.0 * (double)m->hidden_size * kv_copies;
}

/* Layers of a part of a stage. */
struct layers {
	double all, dense; /* `dense` of them have no experts although the others have */
};

static struct layers layers_of(const struct wlb_plan *plan, const struct wlb_model *m, int32_t stage, int32_t chunk)
{
	int64_t all = wlb_plan_layers(plan, m, stage, chunk);
	int64_t dense = m->dense_layers - wlb_plan_first_layer(plan, m, stage, chunk);
	dense = dense < 0 ? 0 : dense < all ? dense : all;
	return (struct layers){(double)all, (double)dense};
}

static struct layers layers_of_stage(const struct wlb_plan *plan, const struct wlb_model *m, int32_t stage)
{
	struct layers sum = {(double)wlb_plan_stage_layers(plan, m, stage), 0.0};
	for (int32_t c = 0; c < plan->interleave && wlb_plan_first_layer(plan, m, stage, c) < m->dense_layers; c++)
		sum.dense += layers_of(plan, m, stage, c).dense;
	return sum;
}

int32_t wlb_plan_expert_ranks(const struct wlb_plan *plan)
{
	return plan->ep > 1 ? plan->ep : 1;
}

int32_t wlb_plan_document_ranks(const struct wlb_plan *plan)
{
	return plan->layout.cp * (plan->dynamic_cp > 0 ? plan->layout.dp : 1);
}

/* The experts of the layers on a rank. */
static double experts_of(const struct wlb_plan *plan, const struct wlb_model *m, struct layers layers)
{
	return (layers.all - layers.dense) * all_experts(m) / plan->layout.tp / wlb_plan_expert_ranks(plan);
}

/* Parameters of the matrices of the layers on a rank. */
static double matrices_of(const struct wlb_plan *plan, const struct wlb_model *m, struct layers layers)
{
	double parameters = (layers.all - layers.dense) * layer_matrices(plan, m, 1) + experts_of(plan, m, layers);
	if (layers.dense > 0.0)
		parameters += layers.dense * layer_matrices(plan, m, 0);
	return parameters;
}

/* Parameters of layers of a stage, with those of its first chunk and of its last. */
static double parameters_of(const struct wlb_plan *plan, const struct wlb_model *m, int32_t stage, struct layers layers,
                            int has_first, int has_last)
{
	double parameters = matrices_of(plan, m, layers) + layers.all * vector_parameters(plan, m);
	int is_last = has_last && stage == plan->layout.pp - 1;
	int has_head = is_last || (plan->shared_head && has_last);
	double table = (double)m->vocab_size * (double)m->hidden_size / plan->layout.tp;
	if (stage == 0 && has_first)
		parameters += table;
	if (is_last)
		parameters += (double)wlb_model_norm_parameters(m);
	if (has_head && !(stage == 0 && m->tie_word_embeddings))
		parameters += table;
	return parameters;
}

double wlb_plan_chunk_parameters(const struct wlb_plan *plan, const struct wlb_model *m, int32_t stage, int32_t chunk)
{
	struct layers layers = layers_of(plan, m, stage, chunk);
	return parameters_of(plan, m, stage, layers, chunk == 0, chunk == plan->interleave - 1);
}

double wlb_plan_stage_parameters(const struct wlb_plan *plan, const struct wlb_model *m, int32_t stage)
{
	return parameters_of(plan, m, stage, layers_of_stage(plan, m, stage), 1, 1);
}

double wlb_plan_chunk_matrices(const struct wlb_plan *plan, const struct wlb_model *m, int32_t stage, int32_t chunk)
{
	return matrices_of(plan, m, layers_of(plan, m, stage, chunk));
}

double wlb_plan_stage_matrices(const struct wlb_plan *plan, const struct wlb_model *m, int32_t stage)
{
	return matrices_of(plan, m, layers_of_stage(plan, m, stage));
}

double wlb_plan_chunk_experts(const struct wlb_plan *plan, const struct wlb_model *m, int32_t stage, int32_t chunk)
{
	return plan->ep > 1 ? experts_of(plan, m, layers_of(plan, m, stage, chunk)) : 0.0;
}

double wlb_plan_stage_experts(const struct wlb_plan *plan, const struct wlb_model *m, int32_t stage)
{
	return plan->ep > 1 ? experts_of(plan, m, layers_of_stage(plan, m, stage)) : 0.0;
}

double wlb_plan_shard(const struct wlb_plan *plan, double parameters, double experts)
{
	double ranks = (double)plan->layout.dp * plan->layout.cp;
	return (parameters - experts + experts * wlb_plan_expert_ranks(plan)) / ranks;
}

int32_t wlb_plan_largest_chunk(const struct wlb_plan *plan, const struct wlb_model *m, int32_t stage)
{
	if (plan->interleave == 1)
		return 0;
	return wlb_plan_layers(plan, m, stage, 1) > wlb_plan_layers(plan, m, stage, 0);
}

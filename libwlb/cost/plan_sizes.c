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

double wlb_plan_token_mlps(const struct wlb_model *m)
{
	return m->num_experts > 0 ? (double)m->num_experts_per_tok : 1.0;
}

double wlb_plan_kv_width(const struct wlb_plan *plan, const struct wlb_model *m)
{
	int64_t tp = plan->layout.tp;
	/* Fewer heads than ranks: each rank holds a copy of one. */
	return (double)((m->num_key_value_heads + tp - 1) / tp * m->head_dim);
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
	return parameters;
}

double wlb_plan_matrix_parameters(const struct wlb_plan *plan, const struct wlb_model *m, double layers)
{
	double tp = (double)plan->layout.tp, hidden = (double)m->hidden_size;
	/* Fewer heads than ranks: see wlb_plan_kv_width. */
	double kv_copies = wlb_plan_kv_width(plan, m) - (double)(m->num_key_value_heads * m->head_dim) / tp;
	/* The matrix that chooses experts is whole on each rank; each expert is cut. */
	double router = hidden * (double)m->num_experts;
	return layers *
	       (((double)wlb_model_layer_matrix_parameters(m) - router) / tp + router + 2.0 * hidden * kv_copies);
}

/* Parameters of so many layers of a stage, with those of its first chunk and of its last. */
static double parameters_of(const struct wlb_plan *plan, const struct wlb_model *m, int32_t stage, double layers,
                            int has_first, int has_last)
{
	double parameters = wlb_plan_matrix_parameters(plan, m, layers) + layers * vector_parameters(plan, m);
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
	double layers = (double)wlb_plan_layers(plan, m, stage, chunk);
	return parameters_of(plan, m, stage, layers, chunk == 0, chunk == plan->interleave - 1);
}

double wlb_plan_stage_parameters(const struct wlb_plan *plan, const struct wlb_model *m, int32_t stage)
{
	return parameters_of(plan, m, stage, (double)wlb_plan_stage_layers(plan, m, stage), 1, 1);
}

int32_t wlb_plan_largest_chunk(const struct wlb_plan *plan, const struct wlb_model *m, int32_t stage)
{
	if (plan->interleave == 1)
		return 0;
	return wlb_plan_layers(plan, m, stage, 1) > wlb_plan_layers(plan, m, stage, 0);
}

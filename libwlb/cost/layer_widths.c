/* The widths of a layer's rows. */
#include "libwlb/cost/layer_widths.h"
#include "libwlb/cost/plan_sizes.h"

static double value_width(const struct wlb_model *m)
{
	return (double)(m->v_head_dim > 0 ? m->v_head_dim : m->head_dim);
}

double wlb_layer_mlp_inputs(const struct wlb_model *m, unsigned modules)
{
	double share = wlb_model_expert_layers_share(m), dense = modules & WLB_RECOMPUTE_MLP ? 1.0 - share : 0.0;
	int shared = m->shared_intermediate_size > 0 && (modules & (WLB_RECOMPUTE_MOE | WLB_RECOMPUTE_SHARED_EXPERTS));
	if (m->num_experts == 0)
		return dense;
	return (modules & WLB_RECOMPUTE_MOE ? wlb_plan_token_experts(m) : 0.0) + (shared ? share : 0.0) + dense;
}

double wlb_layer_gate_and_up(const struct wlb_model *m)
{
	return wlb_family(m->family)->ungated ? 1.0 : 2.0;
}

/* Returns the columns of a token's MLPs in the mean layer whose gated product and casts are operations of their own. */
static double unfused_columns(const struct wlb_layer_cost *cost)
{
	const struct wlb_model *m = cost->model;
	double fused = m->num_experts > 0 && cost->options->fused_experts && cost->options->fp8 == WLB_FP8_MXFP8
	                       ? wlb_plan_token_experts(m) * (double)m->intermediate_size
	                       : 0.0;
	return wlb_plan_mlp_columns(m) - fused;
}

double wlb_layer_width(const struct wlb_layer_cost *cost, enum wlb_width width)
{
	const struct wlb_model *m = cost->model;
	double tp = cost->plan->layout.tp, heads = (double)m->num_attention_heads / tp;
	double queries = heads * (double)m->head_dim;
	switch (width) {
	case WLB_WIDTH_HIDDEN:
		return (double)m->hidden_size;
	case WLB_WIDTH_QUERIES:
		return queries;
	case WLB_WIDTH_KEYS:
		return wlb_plan_kv_width(cost->plan, m);
	case WLB_WIDTH_KEYS_VALUES:
		return 2.0 * wlb_plan_kv_width(cost->plan, m);
	case WLB_WIDTH_QUERIES_KEYS:
		return queries + wlb_plan_kv_width(cost->plan, m);
	case WLB_WIDTH_QUERIES_KEYS_VALUES:
		return queries + 2.0 * wlb_plan_kv_width(cost->plan, m);
	case WLB_WIDTH_ATTENDED:
		return heads * value_width(m);
	case WLB_WIDTH_LATENT_QUERIES:
		return (double)m->q_lora_rank;
	case WLB_WIDTH_QUERIES_INPUT:
		return (double)(m->q_lora_rank > 0 ? m->q_lora_rank : m->hidden_size);
	case WLB_WIDTH_LATENT_KEYS:
		return (double)(m->kv_lora_rank + m->qk_rope_head_dim);
	case WLB_WIDTH_ROTATED:
		return heads * (double)m->qk_rope_head_dim;
	case WLB_WIDTH_KEYS_INPUT:
		return (double)m->kv_lora_rank;
	case WLB_WIDTH_HEADS_KEYS_VALUES:
		return heads * ((double)(m->head_dim - m->qk_rope_head_dim) + value_width(m));
	case WLB_WIDTH_ROUTED:
		return wlb_plan_token_experts(m) * (double)m->hidden_size;
	case WLB_WIDTH_MLP_INPUTS:
		return wlb_layer_mlp_inputs(m, WLB_RECOMPUTE_MOE | WLB_RECOMPUTE_MLP) * (double)m->hidden_size;
	case WLB_WIDTH_MLPS:
		return unfused_columns(cost) / tp;
	case WLB_WIDTH_GATES_AND_UPS:
		return wlb_layer_gate_and_up(m) * unfused_columns(cost) / tp;
	}
	return 0.0;
}

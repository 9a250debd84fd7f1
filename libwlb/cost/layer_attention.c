/* Attention of a layer. */
#include "libwlb/cost/layer.h"
#include "libwlb/cost/layer_operations.h"

/* Bytes of a score that attention which is not fused reads and writes beside its products: a scaled and masked softmax
 * and dropout in two bytes, with a byte for its mask; backward the gradients of both. */
static const struct wlb_seconds score_bytes = {9.0, 11.0};

/* Attention that is not fused, of one layer: products of all heads over all pairs. Forward QK^T and PV, backward two of
 * each of them, for the gradients of both of their factors. */
static struct wlb_seconds unfused_s(const struct wlb_layer_cost *cost, double q_tokens, double k_tokens)
{
	const struct wlb_machine *machine = cost->machine;
	double heads = (double)cost->model->num_attention_heads / cost->plan->layout.tp;
	double dim = (double)wlb_model_head_width(cost->model), q_rows = heads * q_tokens, k_rows = heads * k_tokens;
	double scores_s = wlb_machine_gemm_s(machine, q_rows, dim, k_tokens);
	double values_s = wlb_machine_gemm_s(machine, q_rows, k_tokens, dim);
	double keys_s = wlb_machine_gemm_s(machine, k_rows, q_tokens, dim);
	return (struct wlb_seconds){
		scores_s + values_s + wlb_layer_memory_s(cost, score_bytes.forward * q_rows * k_tokens),
		scores_s + values_s + 2.0 * keys_s + wlb_layer_memory_s(cost, score_bytes.backward * q_rows * k_tokens),
	};
}

/* Attention of the mean layer in one direction; ranks have whole heads. */
static double attention_s(const struct wlb_layer_cost *cost, double q_tokens, double k_tokens, int backward)
{
	const struct wlb_model *m = cost->model;
	int heads = (int)(m->num_attention_heads / cost->plan->layout.tp), dim = (int)wlb_model_head_width(m);
	double share = wlb_model_window_share(m), window = (double)m->sliding_window, seconds = 0.0;
	if (share < 1.0)
		seconds += (1.0 - share) *
		           wlb_machine_attention_s(cost->machine, heads, dim, 0.0, q_tokens, k_tokens, backward);
	if (share > 0.0)
		seconds += share *
		           wlb_machine_attention_s(cost->machine, heads, dim, window, q_tokens, k_tokens, backward);
	return seconds;
}

struct wlb_seconds wlb_layer_attention_s(const struct wlb_layer_cost *cost, double q_tokens, double k_tokens)
{
	int unfused = cost->options->unfused_attention, again = WLB_RECOMPUTE_CORE_ATTN;
	struct wlb_seconds sum = unfused ? unfused_s(cost, q_tokens, k_tokens)
	                                 : (struct wlb_seconds){attention_s(cost, q_tokens, k_tokens, 0),
	                                                        attention_s(cost, q_tokens, k_tokens, 1)};
	if (unfused)
		again |= WLB_RECOMPUTE_SELECTIVE;
	if (cost->plan->recompute & again)
		sum.backward += sum.forward;
	return sum;
}

struct wlb_seconds wlb_layer_attention_least_s(const struct wlb_layer_cost *cost, double pairs)
{
	double flops = 4.0 * pairs * (double)(cost->model->num_attention_heads * wlb_model_head_width(cost->model)) /
	               cost->plan->layout.tp;
	if (cost->options->unfused_attention) {
		double forward_s = flops / wlb_machine_gemm_most(cost->machine);
		return (struct wlb_seconds){forward_s, 2.0 * forward_s};
	}
	return (struct wlb_seconds){
		flops / wlb_machine_attention_most(cost->machine, 0),
		2.5 * flops / wlb_machine_attention_most(cost->machine, 1),
	};
}

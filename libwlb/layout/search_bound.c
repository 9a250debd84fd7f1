#include "libwlb/layout/search_bound.h"

#include <math.h>

#include "libwlb/layout/plan.h"

/* Seconds of a collective that are proportional to its bytes, without its latency. */
static double moved_s(const struct wlb_machine *machine, int ranks, int on_node, double bytes)
{
	return wlb_machine_gather_s(machine, ranks, on_node, 0, bytes) -
	       wlb_machine_gather_s(machine, ranks, on_node, 0, 0.0);
}

/* Seconds to gather the keys and values of one layer, for a step's tokens of one replica. */
static double gather_keys_s(const struct wlb_search *search, const struct wlb_plan *plan, double tokens)
{
	const struct wlb_layout *l = &plan->layout;
	int on_node = search->machine.gpus_per_node / l->tp;
	on_node = on_node < 1 ? 1 : on_node < l->cp ? on_node : l->cp;
	double bytes = 2.0 * wlb_machine_element_bytes(&search->machine) * wlb_plan_kv_width(plan, &search->model);
	return (1.0 - search->options.cost.cp_overlap) * moved_s(&search->machine, l->cp, on_node, tokens * bytes);
}

/* The highest rate of attention, FLOP/s, as its machine fields or its measured grid have it. */
static double attention_most(const struct wlb_machine *machine, int backward)
{
	const struct wlb_attention_rates *rates = &machine->attention;
	double efficiency = backward ? machine->attention_backward_efficiency : machine->attention_efficiency;
	double most = rates->q_count == 0 ? machine->peak_flops * efficiency : 0.0;
	for (int32_t i = 0; i < rates->q_count * rates->k_count; i++)
		most = fmax(most, (backward ? rates->backward_flops_per_s : rates->forward_flops_per_s)[i]);
	return most;
}

/* Seconds of one layer and of the head for the tokens of a mean replica in a step, forward and backward. */
struct work {
	double layer_s; /* at full speed, moving its bytes without waiting */
	double keys_s;  /* that gathering the keys and values of a layer adds */
	double head_s;
};

static struct work work_of(const struct wlb_search *search, const struct wlb_plan *plan)
{
	const struct wlb_model *m = &search->model;
	const struct wlb_machine *machine = &search->machine;
	const struct wlb_layout *l = &plan->layout;
	double passes = plan->recompute == WLB_RECOMPUTE_FULL ? 2.0 : 1.0;
	double tokens = search->work.tokens / ((double)l->dp * l->cp), hidden = (double)m->hidden_size;
	double gemm_flops_per_s = wlb_machine_gemm_most(machine);
	double linear_s = 2.0 * wlb_plan_layer_matrices(m) * tokens / l->tp / gemm_flops_per_s;
	double head_s = 2.0 * hidden * (double)m->vocab_size * tokens / l->tp / gemm_flops_per_s;
	double pair_flops = 4.0 * (double)(m->num_attention_heads * m->head_dim) / l->tp;
	double attention_flops = pair_flops * search->work.pairs / ((double)l->dp * l->cp);
	double products = plan->recompute == WLB_RECOMPUTE_NONE ? 2.0 : 2.5;
	int on_node = l->tp < machine->gpus_per_node ? l->tp : machine->gpus_per_node;
	double bytes = tokens * hidden * wlb_machine_element_bytes(machine);
	double tp_s = (1.0 - search->options.cost.tp_overlap) * moved_s(machine, l->tp, on_node, bytes);
	return (struct work){
		.layer_s = (2.0 + passes) * linear_s + (6.0 + 4.0 * passes) * tp_s +
	                   attention_flops * (passes / search->attention_forward_most +
	                                      products / search->attention_backward_most),
		.keys_s = (2.0 + passes) * gather_keys_s(search, plan, tokens * l->cp),
		.head_s = 3.0 * head_s,
	};
}

/* Dynamic context parallelism gathers at most what documents have that are too long for one rank: their share. */
static double gathered_share(const struct wlb_search *search, const struct wlb_candidate *c)
{
	double split = 0.0, all = 0.0, rank_tokens = (double)c->micro_batch_tokens / c->plan.layout.cp;
	for (int b = 0; search->options.dynamic && b < WLB_SEARCH_LENGTHS; b++) {
		all += search->tokens_of_length[b];
		split += (double)(INT64_C(1) << b) > rank_tokens ? search->tokens_of_length[b] : 0.0;
	}
	return search->options.dynamic ? split / all : 1.0;
}

/* No step is shorter than the work of the stage that has the most. */
static double longest_stage_s(const struct wlb_search_plan *plan, double layer_s, double head_s)
{
	return fmax((double)plan->most_layers * layer_s, (double)plan->last_layers * layer_s + head_s);
}

void wlb_search_bound(const struct wlb_search *search, struct wlb_search_plan *found)
{
	struct wlb_candidate *c = &found->candidate;
	const struct wlb_plan *plan = &c->plan;
	struct work work = work_of(search, plan);
	double certain_s = work.layer_s + (search->options.dynamic ? 0.0 : work.keys_s);
	double likely_s = work.layer_s + work.keys_s * gathered_share(search, c);
	c->bound_s = longest_stage_s(found, certain_s, work.head_s);
	/* Adds the bubble of equal micro-batches. */
	double bubble = (plan->layout.pp - 1) / ((double)plan->micro_batches * plan->interleave);
	found->guess_s = longest_stage_s(found, likely_s, work.head_s) * (1.0 + bubble);
}

void wlb_search_rates(struct wlb_search *search)
{
	search->attention_forward_most = attention_most(&search->machine, 0);
	search->attention_backward_most = attention_most(&search->machine, 1);
}

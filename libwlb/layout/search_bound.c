/* Computes a lower bound of a plan's step time, and an estimate of it. */
#include <math.h>
#include <string.h>

#include "libwlb/cost/layer.h"
#include "libwlb/cost/plan_sizes.h"
#include "libwlb/layout/search_recompute.h"
#include "libwlb/layout/search_split.h"
#include "libwlb/layout/search_state.h"

/* Returns the part of a collective's seconds that is proportional to its bytes: its time without latency. */
static double transfer_s(const struct wlb_machine *machine, int ranks, int on_node, double bytes)
{
	return wlb_machine_gather_s(machine, ranks, on_node, 0, bytes) -
	       wlb_machine_gather_s(machine, ranks, on_node, 0, 0.0);
}

/* Returns the seconds to gather the keys and values of one layer, for a step's tokens of one replica, without what is
 * hidden: no more than its attention over the keys of other ranks takes, backward that with a gather and a sum. With
 * that attention the least seconds of both are no more than their true ones, since attention grows by more than it
 * hides. */
static struct wlb_seconds gather_keys_s(const struct wlb_search *search, const struct wlb_plan *plan, double tokens,
                                        struct wlb_seconds attention)
{
	const struct wlb_layout *l = &plan->layout;
	int worker = search->options.cost.trainer == WLB_COST_WORKER;
	int on_node = wlb_machine_linked_gpus(&search->machine) / l->tp;
	on_node = on_node < 1 ? 1 : on_node < l->cp ? on_node : l->cp;
	double bytes = 2.0 * wlb_machine_element_bytes(&search->machine) * wlb_plan_kv_width(plan, &search->model);
	double all_s = transfer_s(&search->machine, l->cp, on_node, tokens * bytes);
	const struct wlb_overlap *hidden = &search->options.cost.cp_overlap;
	double later = (l->cp - 1.0) / l->cp, back_s = worker ? INFINITY : 0.5 * later * attention.backward;
	return (struct wlb_seconds){all_s - fmin(hidden->forward * all_s, later * attention.forward),
	                            all_s - fmin(hidden->backward * all_s, back_s)};
}

/* Returns what a layer and the head take for the tokens of a mean replica in a step. */
static struct wlb_search_layer layer_of(const struct wlb_search *search, const struct wlb_plan *plan)
{
	const struct wlb_machine *machine = &search->machine;
	const struct wlb_cost_options *options = &search->options.cost;
	const struct wlb_layout *l = &plan->layout;
	const struct wlb_layer_cost cost = {&search->model, machine, options, plan};
	double ranks = (double)l->dp * l->cp, tokens = search->work.tokens / ranks;
	double slowest_rank = wlb_slowest_rank(&cost);
	struct wlb_seconds linear = wlb_layer_least_s(&cost, tokens), head = wlb_head_least_s(&cost, tokens);
	struct wlb_seconds attention = wlb_layer_attention_least_s(&cost, search->work.pairs / ranks);
	attention = (struct wlb_seconds){slowest_rank * attention.forward, slowest_rank * attention.backward};
	int linked = wlb_machine_linked_gpus(machine), on_node = l->tp < linked ? l->tp : linked;
	double bytes = tokens * (double)search->model.hidden_size * wlb_machine_element_bytes(machine);
	double tp_s = transfer_s(machine, l->tp, on_node, bytes);
	double gather_s = tp_s * wlb_layer_gathered_bytes(&cost) / wlb_machine_element_bytes(machine);
	/* Rows of experts on other ranks are not gathered again. */
	double gathers_back = options->whole_rows ? 2.0 : wlb_plan_expert_ranks(plan) > 1 ? 3.0 : 4.0;
	double exchange_s = wlb_layer_exchange_s(&cost, tokens, 0) - wlb_layer_exchange_s(&cost, 0.0, 0);
	int beside = wlb_layer_hides_exchange(&cost);
	if (beside)
		exchange_s = wlb_layer_exchange_lost_s(&cost, exchange_s);
	/* Of rows in halves all may be hidden. */
	struct wlb_overlap hidden = options->halved_rows > 0 ? (struct wlb_overlap){1.0, 1.0} : options->tp_overlap;
	double tp_forward_s = (1.0 - hidden.forward) * 2.0 * (gather_s + tp_s);
	double tp_backward_s = (1.0 - hidden.backward) * (gathers_back * gather_s + 2.0 * tp_s);
	double forward_s = slowest_rank * linear.forward + attention.forward + tp_forward_s + exchange_s;
	/* What ends early leaves out the last product, the collective after it, and half of the exchange. */
	double left_out_s = options->early_stop ? slowest_rank * wlb_layer_last_least_s(&cost, tokens) +
	                                                  (1.0 - hidden.forward) * tp_s +
	                                                  (options->weighted_experts ? 0.5 * exchange_s : 0.0)
	                                        : 0.0;
	return (struct wlb_search_layer){
		.layout = *l,
		.ep = plan->ep,
		.hides_exchange = beside,
		.pass_s = {forward_s, slowest_rank * linear.backward + attention.backward + tp_backward_s + exchange_s},
		.again_s = forward_s - left_out_s,
		.keys_s = gather_keys_s(search, plan, tokens * l->cp, attention),
		.head_s = slowest_rank * (head.forward + head.backward),
	};
}

/* Seconds of one layer for the tokens of a mean replica in a step, forward, backward and computed again. */
struct work {
	double layer_s; /* at the highest rates, without latencies */
	double keys_s;  /* that gathering the keys and values of a layer adds */
	double head_s;
};

/* Plans of one layout and ep follow each other: what does not depend on more than these is kept. */
static struct work work_of(struct wlb_search *search, const struct wlb_plan *plan)
{
	struct wlb_search_layer *layer = &search->layer;
	double recomputed = wlb_search_recomputed_share(search, plan);
	double gathers_back = search->options.cost.trainer == WLB_COST_WORKER ? 1.0 : 2.0;
	const struct wlb_layer_cost cost = {&search->model, &search->machine, &search->options.cost, plan};
	if (memcmp(&layer->layout, &plan->layout, sizeof(layer->layout)) != 0 || layer->ep != plan->ep ||
	    layer->hides_exchange != wlb_layer_hides_exchange(&cost))
		*layer = layer_of(search, plan);
	return (struct work){
		.layer_s = layer->pass_s.forward + recomputed * layer->again_s + layer->pass_s.backward,
		.keys_s = (1.0 + recomputed) * layer->keys_s.forward + gathers_back * layer->keys_s.backward,
		.head_s = layer->head_s,
	};
}

static struct wlb_search_products products_of(const struct wlb_search *search, const struct wlb_plan *plan,
                                              double tokens)
{
	const struct wlb_layer_cost cost = {&search->model, &search->machine, &search->options.cost, plan};
	struct wlb_seconds products = wlb_layer_products_s(&cost, tokens);
	double least_s = 2.0 * wlb_model_layer_active_parameters(&search->model) * tokens / plan->layout.tp /
	                 wlb_machine_gemm_most(&search->machine) /
	                 wlb_machine_fp8_rate(&search->machine, search->options.cost.fp8);
	return (struct wlb_search_products){
		plan->layout.tp, plan->ep, tokens, {products.forward - least_s, products.backward - 2.0 * least_s}};
}

/* Returns what the products of a layer take beyond the least time, for the tokens of a mean replica in a step. Those of
 * experts with few rows take several times as long: where few ranks divide the experts, which have the least to
 * exchange. 0 for models without experts, whose plans differ less. */
static double beyond_least_s(struct wlb_search *search, const struct wlb_plan *plan)
{
	int32_t m = plan->micro_batches;
	struct wlb_search_products *kept = &search->products[m % WLB_SEARCH_PRODUCTS];
	double tokens = search->work.tokens / ((double)plan->layout.dp * plan->layout.cp * m);
	if (search->model.num_experts == 0)
		return 0.0;
	if (kept->tp != plan->layout.tp || kept->ep != plan->ep || kept->tokens != tokens)
		*kept = products_of(search, plan, tokens);
	return m *
	       ((1.0 + wlb_search_recomputed_share(search, plan)) * kept->beyond_s.forward + kept->beyond_s.backward);
}

/* Returns the share of the tokens whose keys and values are gathered: all; with dynamic context parallelism, at most
 * those of documents that are too long for one rank. */
static double gathered_tokens_share(const struct wlb_search *search, const struct wlb_candidate *c)
{
	double split = 0.0, all = 0.0, rank_tokens = (double)c->micro_batch_tokens / c->plan.layout.cp;
	for (int b = 0; search->options.dynamic && b < WLB_SEARCH_LENGTHS; b++) {
		all += search->tokens_of_length[b];
		split += (double)(INT64_C(1) << b) > rank_tokens ? search->tokens_of_length[b] : 0.0;
	}
	return search->options.dynamic ? split / all : 1.0;
}

void wlb_search_bound(struct wlb_search *search, struct wlb_search_plan *found)
{
	struct wlb_candidate *c = &found->candidate;
	const struct wlb_plan *plan = &c->plan;
	struct work work = work_of(search, plan);
	double certain_s = work.layer_s + (search->options.dynamic ? 0.0 : work.keys_s);
	double likely_s = work.layer_s + beyond_least_s(search, plan) + work.keys_s * gathered_tokens_share(search, c);
	c->bound_s = wlb_search_longest_stage(found, certain_s, work.head_s); /* no step is shorter */
	/* Adds the bubble of equal micro-batches. */
	double bubble = (plan->layout.pp - 1) / ((double)plan->micro_batches * plan->interleave);
	found->estimate_s = wlb_search_longest_stage(found, likely_s, work.head_s) * (1.0 + bubble);
}

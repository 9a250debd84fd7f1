/* Every plan that the GPUs and the model allow, with its memory and a lower bound of its step time. */
#include "libwlb/layout/search_enumerate.h"

#include <math.h>
#include <stdlib.h>

#include "libwlb/capacity.h"
#include "libwlb/cost/layer.h"
#include "libwlb/layout/plan.h"

/* Groups of tp GPUs that fit inside the nodes. */
static int64_t slots_of(const struct wlb_search *search, int32_t tp)
{
	int64_t slots = 0;
	for (int32_t n = 0; n < search->options.nodes; n++)
		slots += search->usable[n] / tp;
	return slots;
}

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
	return (1.0 - search->options.cost.cp_overlap) *
	       moved_s(&search->machine, l->cp, on_node,
	               2.0 * wlb_machine_element_bytes(&search->machine) * tokens *
	                       wlb_plan_kv_width(plan, &search->model));
}

/* The share of the layers that the backward pass computes again as a whole. */
static double recomputed_share(const struct wlb_plan *plan, const struct wlb_model *model)
{
	double layers = 0.0;
	for (int32_t s = 0; plan->recompute == WLB_RECOMPUTE_FULL && s < plan->layout.pp; s++)
		for (int32_t c = 0; c < plan->interleave; c++)
			layers += wlb_plan_layers_again(plan, model, s, c);
	return layers / (double)model->num_hidden_layers;
}

/* A lower bound of the step time: a mean stage of a mean replica computes at full speed and moves its bytes without
 * waiting. *keys_s receives the time that gathering keys and values adds. */
static double bound_s(const struct wlb_search *search, const struct wlb_plan *plan, double *keys_s)
{
	const struct wlb_model *m = &search->model;
	const struct wlb_machine *machine = &search->machine;
	const struct wlb_cost_options *options = &search->options.cost;
	const struct wlb_layout *l = &plan->layout;
	const struct wlb_layer_cost cost = {m, machine, options, plan};
	double again = recomputed_share(plan, m), layers = (double)m->num_hidden_layers;
	double tokens = search->work.tokens / ((double)l->dp * l->cp);
	struct wlb_seconds linear = wlb_layer_least_s(&cost, tokens), head = wlb_head_least_s(&cost, tokens);
	struct wlb_seconds attention = wlb_layer_attention_least_s(&cost, search->work.pairs / ((double)l->dp * l->cp));
	int on_node = l->tp < machine->gpus_per_node ? l->tp : machine->gpus_per_node;
	double bytes = tokens * (double)m->hidden_size * wlb_machine_element_bytes(machine);
	double tp_s = (1.0 - options->tp_overlap) * moved_s(machine, l->tp, on_node, bytes);
	double layer_s = (1.0 + again) * (linear.forward + attention.forward) + linear.backward + attention.backward +
	                 (10.0 + 4.0 * again) * tp_s;
	double gathers = options->trainer == WLB_COST_WORKER ? 2.0 : 3.0;
	*keys_s = layers * (gathers + again) * gather_keys_s(search, plan, tokens * l->cp) / l->pp;
	return (layers * layer_s + head.forward + head.backward) / l->pp;
}

/* Sets bound and guess. Dynamic context parallelism gathers at most what documents have that are too long for one
 * rank, and may have nothing to gather. */
static void judge(const struct wlb_search *search, struct wlb_search_plan *found)
{
	struct wlb_candidate *c = &found->candidate;
	const struct wlb_plan *plan = &c->plan;
	double keys_s;
	c->bound_s = bound_s(search, plan, &keys_s);
	if (!search->options.dynamic)
		c->bound_s += keys_s;
	double split = 0.0, all = 0.0, rank_tokens = (double)c->micro_batch_tokens / plan->layout.cp;
	for (int b = 0; b < WLB_SEARCH_LENGTHS; b++) {
		all += search->tokens_of_length[b];
		split += (double)(INT64_C(1) << b) > rank_tokens ? search->tokens_of_length[b] : 0.0;
	}
	double busy_s = c->bound_s + (search->options.dynamic ? keys_s * split / all : 0.0);
	/* Adds the bubble of equal micro-batches. */
	found->guess_s = busy_s * (1.0 + (plan->layout.pp - 1) / ((double)plan->micro_batches * plan->interleave));
}

static int add(struct wlb_search *search, const struct wlb_search_plan *plan, struct wlb_error *error)
{
	if (wlb_grow((void **)&search->plans, &search->capacity, search->count + 1, sizeof(*search->plans)) < 0)
		return wlb_fail(error, "out of memory for %zu plans", search->count + 1);
	search->plans[search->count++] = *plan;
	return 0;
}

/* The stage that needs most is the first, with most micro-batches in flight, or the last, with the logits. */
static void weigh(const struct wlb_search *search, struct wlb_candidate *c)
{
	double margin = search->options.memory_margin;
	int32_t last = c->plan.layout.pp - 1;
	c->stage = 0;
	c->memory = wlb_memory_stage(&c->plan, &search->model, 0, c->micro_batch_tokens, search->longest, margin);
	if (last > 0) {
		struct wlb_memory memory = wlb_memory_stage(&c->plan, &search->model, last, c->micro_batch_tokens,
		                                            search->longest, margin);
		if (memory.total > c->memory.total) {
			c->memory = memory;
			c->stage = last;
		}
	}
	c->missing_bytes = fmax(0.0, c->memory.total - search->machine.memory_bytes);
}

/* Adds the plan with the least recomputation that fits, or the one with the most where none fits. */
static int add_plan(struct wlb_search *search, struct wlb_plan plan, struct wlb_error *error)
{
	const struct wlb_search_options *options = &search->options;
	double windows = (double)options->global_batch / ((double)plan.micro_batches * plan.layout.dp);
	struct wlb_search_plan found = {.candidate = {.plan = plan, .gpus = wlb_layout_ranks(&plan.layout)}};
	struct wlb_candidate *c = &found.candidate;
	c->micro_batch_tokens =
		(int64_t)ceil((double)options->seq_length * fmax(1.0, windows) * options->max_length_ratio);
	if (plan.layout.pp > 1 && plan.zero_stage > 1)
		c->plan.zero_stage = 1;
	for (int r = WLB_RECOMPUTE_SELECTIVE; r <= WLB_RECOMPUTE_FULL; r++) {
		c->plan.recompute = (enum wlb_recompute)r;
		weigh(search, c);
		if (c->missing_bytes == 0.0)
			break;
	}
	if (wlb_plan_check(&c->plan, &search->model, NULL) < 0)
		return 0;
	judge(search, &found);
	return add(search, &found, error);
}

/* One micro-batch for each window of the batch, or longer ones, two and four windows each. */
static int add_micro_batches(struct wlb_search *search, struct wlb_plan plan, struct wlb_error *error)
{
	int32_t dp = plan.layout.dp, last = 0;
	int32_t each = (search->options.global_batch + dp - 1) / dp;
	for (int32_t windows = 1; windows <= 4; windows *= 2) {
		int32_t m = (each + windows - 1) / windows;
		if (plan.interleave > 1)
			m = (m + plan.layout.pp - 1) / plan.layout.pp * plan.layout.pp;
		if (m == last)
			continue;
		last = plan.micro_batches = m;
		if (add_plan(search, plan, error) < 0)
			return -1;
	}
	return 0;
}

/* cp fills whole nodes with tp, or parts of one that divide it: neighbours without a gap. */
static int cp_fits(const struct wlb_search *search, int32_t tp, int64_t cp)
{
	int64_t group = tp * cp, gpus = search->machine.gpus_per_node;
	return cp * 2 * search->machine.attention_tile_tokens <= search->options.seq_length || cp == 1
	               ? gpus % group == 0 || group % gpus == 0 || cp == 1
	               : 0;
}

static int add_pipelines(struct wlb_search *search, int32_t tp, int32_t cp, int64_t slots, struct wlb_error *error)
{
	int64_t most = slots / cp < search->model.num_hidden_layers ? slots / cp : search->model.num_hidden_layers;
	for (int32_t pp = 1; pp <= most; pp++) {
		int64_t dp = slots / ((int64_t)cp * pp);
		struct wlb_plan plan = {.layout = {tp, cp, pp, 1}, .zero_stage = search->options.zero_stage};
		/* Each replica needs at least one window of the batch. */
		plan.layout.dp = (int)(dp < search->options.global_batch ? dp : search->options.global_batch);
		for (int32_t v = 1; v <= search->options.max_interleave; v++) {
			if (v > 1 && (pp == 1 || (int64_t)pp * v > search->model.num_hidden_layers))
				break;
			plan.interleave = v;
			if (add_micro_batches(search, plan, error) < 0)
				return -1;
		}
	}
	return 0;
}

int wlb_search_enumerate(struct wlb_search *search, struct wlb_error *error)
{
	for (int32_t tp = 1; tp <= search->most_usable; tp++) {
		if (search->model.num_attention_heads % tp != 0)
			continue;
		int64_t slots = slots_of(search, tp);
		for (int32_t cp = 1; cp <= slots; cp++)
			if (cp_fits(search, tp, cp) && add_pipelines(search, tp, cp, slots, error) < 0)
				return -1;
	}
	return 0;
}

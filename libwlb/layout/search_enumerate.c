/* Every plan that the GPUs and the model allow, with its memory and a lower bound of its step time. */
#include "libwlb/layout/search_enumerate.h"

#include <math.h>
#include <stdlib.h>

#include "libwlb/capacity.h"
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
	       moved_s(&search->machine, l->cp, on_node, 4.0 * tokens * wlb_plan_kv_width(plan, &search->model));
}

/* A lower bound of the step time: a mean stage of a mean replica computes at full speed and moves its bytes without
 * waiting. *keys_s receives the time that gathering keys and values adds. */
static double bound_s(const struct wlb_search *search, const struct wlb_plan *plan, double *keys_s)
{
	const struct wlb_model *m = &search->model;
	const struct wlb_machine *machine = &search->machine;
	const struct wlb_layout *l = &plan->layout;
	double passes = plan->recompute == WLB_RECOMPUTE_FULL ? 2.0 : 1.0, layers = (double)m->num_hidden_layers;
	double tokens = search->work.tokens / ((double)l->dp * l->cp), hidden = (double)m->hidden_size;
	double gemm_flops_per_s = wlb_machine_gemm_most(machine);
	double linear_s = 2.0 * wlb_plan_layer_matrices(m) * tokens / l->tp / gemm_flops_per_s;
	double head_s = 2.0 * hidden * (double)m->vocab_size * tokens / l->tp / gemm_flops_per_s;
	double pair_flops = 4.0 * (double)(m->num_attention_heads * m->head_dim) / l->tp;
	double attention_s = pair_flops * search->work.pairs / ((double)l->dp * l->cp) / machine->peak_flops;
	double products = plan->recompute == WLB_RECOMPUTE_NONE ? 2.0 : 2.5;
	int on_node = l->tp < machine->gpus_per_node ? l->tp : machine->gpus_per_node;
	double tp_s = (1.0 - search->options.cost.tp_overlap) * moved_s(machine, l->tp, on_node, tokens * hidden * 2.0);
	double layer_s = (2.0 + passes) * linear_s + (6.0 + 4.0 * passes) * tp_s +
	                 attention_s * (passes / machine->attention_efficiency +
	                                products / machine->attention_backward_efficiency);
	*keys_s = layers * (2.0 + passes) * gather_keys_s(search, plan, tokens * l->cp) / l->pp;
	return (layers * layer_s + 3.0 * head_s) / l->pp;
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

/* The value that the caller holds, or `otherwise`. */
static int32_t held(int32_t fixed, int64_t otherwise)
{
	return fixed > 0 ? fixed : (int32_t)otherwise;
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
	int fixed = options->fixed.recompute, most = fixed >= 0 ? fixed : WLB_RECOMPUTE_FULL;
	for (int r = fixed >= 0 ? fixed : WLB_RECOMPUTE_SELECTIVE; r <= most; r++) {
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
	int32_t fixed = search->options.fixed.micro_batch_windows;
	for (int32_t windows = held(fixed, 1); windows <= held(fixed, 4); windows *= 2) {
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
	if (search->options.fixed.cp > 0)
		return 1;
	return cp * 2 * search->machine.attention_tile_tokens <= search->options.seq_length || cp == 1
	               ? gpus % group == 0 || group % gpus == 0 || cp == 1
	               : 0;
}

/* As many replicas as the GPUs and the batch allow, each with at least one window, or as many as the caller holds.
 * Returns 0 where that is not allowed. */
static int32_t replicas_of(const struct wlb_search *search, int32_t tp, int64_t stage_slots, int64_t slots)
{
	int64_t most = slots / stage_slots;
	most = most < search->options.global_batch ? most : search->options.global_batch;
	int32_t dp = held(search->options.fixed.dp, most);
	if (dp > most || (search->options.every_gpu && tp * stage_slots * dp != search->gpus))
		return 0;
	return dp;
}

static int add_pipelines(struct wlb_search *search, int32_t tp, int32_t cp, int64_t slots, struct wlb_error *error)
{
	const struct wlb_search_fixed *fixed = &search->options.fixed;
	int64_t most = slots / cp < search->model.num_hidden_layers ? slots / cp : search->model.num_hidden_layers;
	for (int32_t pp = held(fixed->pp, 1); pp <= most && pp <= held(fixed->pp, most); pp++) {
		struct wlb_plan plan = {.layout = {tp, cp, pp, 1}, .zero_stage = search->options.zero_stage};
		plan.layout.dp = replicas_of(search, tp, (int64_t)cp * pp, slots);
		if (plan.layout.dp == 0)
			continue;
		int32_t v = held(fixed->interleave, 1);
		for (; v <= held(fixed->interleave, search->options.max_interleave); v++) {
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
	const struct wlb_search_fixed *fixed = &search->options.fixed;
	for (int32_t tp = held(fixed->tp, 1); tp <= held(fixed->tp, search->most_usable); tp++) {
		if (search->model.num_attention_heads % tp != 0)
			continue;
		int64_t slots = slots_of(search, tp);
		for (int32_t cp = held(fixed->cp, 1); cp <= slots && cp <= held(fixed->cp, slots); cp++)
			if (cp_fits(search, tp, cp) && add_pipelines(search, tp, cp, slots, error) < 0)
				return -1;
	}
	return 0;
}

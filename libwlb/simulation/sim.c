/* Makes and frees simulators. */
#include "libwlb/cost/plan_sizes.h"
#include "libwlb/simulation/sim_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Those of the ranks for whose keys there is memory, at most 2^20, are at most what a placer takes. */
static const int64_t most_rank_tokens = (int64_t)1 << 40;

void wlb_sim_options_init(struct wlb_sim_options *options, const struct wlb_plan *plan)
{
	*options = (struct wlb_sim_options){
		.plan = *plan,
		.sharding = WLB_SHARDING_ADAPTIVE,
		.windows = 1,
		.timeline = 1,
	};
	wlb_cost_options_init(&options->cost);
}

static int check_options(const struct wlb_sim_options *options, struct wlb_error *error)
{
	if (wlb_cost_options_check(&options->cost, error) < 0)
		return -1;
	if (options->sharding > WLB_SHARDING_ADAPTIVE)
		return wlb_fail(error, "sharding is %d: it must be per-sequence, per-document or adaptive",
		                (int)options->sharding);
	if (options->windows < 1 || options->windows > 1 << 20)
		return wlb_fail(error, "%d windows in a micro-batch: it must be between 1 and %d", options->windows,
		                1 << 20);
	if (options->attention > WLB_SIM_SERVERS)
		return wlb_fail(error, "attention is %d: it must be one of enum wlb_sim_attention",
		                (int)options->attention);
	if (options->plan.dynamic_cp > 0 && options->attention != WLB_SIM_DYNAMIC)
		return wlb_fail(error, "attention is %d: it must be WLB_SIM_DYNAMIC, %d, with dynamic_cp above 0",
		                (int)options->attention, (int)WLB_SIM_DYNAMIC);
	if (options->rank_tokens < 0 || options->rank_tokens > most_rank_tokens)
		return wlb_fail(error, "rank_tokens is %lld: it must be between 0 and %lld",
		                (long long)options->rank_tokens, (long long)most_rank_tokens);
	if (options->cost.trainer == WLB_COST_WORKER && options->ring)
		return wlb_fail(error, "keys and values cannot go around a ring: wlb-worker gathers them");
	int ranks = wlb_layout_ranks(&options->plan.layout);
	for (int r = 0; options->slowdown != NULL && r < ranks; r++)
		if (!(options->slowdown[r] >= 1.0 && options->slowdown[r] <= 1e6))
			return wlb_fail(error, "slowdown of rank %d is %g: it must be a number from 1 to 1000000", r,
			                options->slowdown[r]);
	return 0;
}

static int least(int a, int b)
{
	return a < b ? a : b;
}

/* Returns 1 where ranks `first` to `last` of the layout are under different leaf switches. */
static int crosses(const struct wlb_sim *sim, int first, int last)
{
	const int32_t *leaf = sim->options.leaf;
	int gpus = sim->machine.gpus_per_node;
	return leaf != NULL && leaf[first / gpus] != leaf[last / gpus];
}

static int stage_crosses(const struct wlb_sim *sim, int first, int last)
{
	return first / sim->machine.gpus_per_node != last / sim->machine.gpus_per_node && crosses(sim, first, last);
}

/* Finds which groups cross a leaf switch: the nodes of a group are consecutive, so its first and last rank decide. */
static void find_groups(struct wlb_sim *sim)
{
	const struct wlb_layout *l = &sim->options.plan.layout;
	int gpus = wlb_machine_linked_gpus(&sim->machine), stage = l->tp * l->cp, all = wlb_layout_ranks(l);
	int outermost = sim->options.cost.pp_outermost;
	int dp_apart = outermost ? stage : stage * l->pp, dp_span = dp_apart * l->dp; /* of a group's ranks */
	int pp_apart = outermost ? stage * l->dp : stage, pp_span = pp_apart * l->pp;
	sim->tp_on_node = least(l->tp, gpus);
	sim->cp_on_node = least(l->cp, gpus / l->tp > 0 ? gpus / l->tp : 1);
	sim->dp_on_node = sim->cp_on_node * least(l->dp, gpus / dp_apart > 0 ? gpus / dp_apart : 1);
	for (int r = 0; r < all; r += stage)
		sim->cp_crosses |= stage_crosses(sim, r, r + stage - 1);
	for (int r = 0; r < all; r += l->tp)
		sim->tp_crosses |= stage_crosses(sim, r, r + l->tp - 1);
	for (int r = 0; r < all; r += dp_span)
		sim->dp_crosses |= crosses(sim, r, r + dp_span - 1);
	int experts = l->tp * wlb_plan_expert_ranks(&sim->options.plan);
	for (int r = 0; r < all; r += experts)
		sim->ep_crosses |= stage_crosses(sim, r, r + experts - 1);
	int experts_on_node = least(experts, gpus) / l->tp;
	sim->expert_replicas_on_node = experts_on_node > 0 ? sim->dp_on_node / experts_on_node : 0;
	sim->expert_replicas_on_node = sim->expert_replicas_on_node > 0 ? sim->expert_replicas_on_node : 1;
	sim->pp_on_node = least(l->pp, gpus / pp_apart > 0 ? gpus / pp_apart : 1);
	for (int r = 0; r < all; r += pp_span)
		sim->pp_crosses |= stage_crosses(sim, r, r + pp_span - 1);
}

static void set_costs(struct wlb_sim *sim)
{
	sim->cost = (struct wlb_layer_cost){
		.model = &sim->model,
		.machine = &sim->machine,
		.options = &sim->options.cost,
		.plan = &sim->options.plan,
	};
	/* Keys and values. */
	sim->kv_token_bytes =
		2.0 * wlb_plan_kv_width(&sim->options.plan, &sim->model) * wlb_machine_element_bytes(&sim->machine);
}

/* The speed of each stage of each replica is that of its slowest rank: of all replicas where a micro-batch is theirs
 * together. */
static void set_slowdown(struct wlb_sim *sim)
{
	const struct wlb_layout *l = &sim->options.plan.layout;
	int ranks = wlb_layout_ranks(l), group = l->tp * l->cp, outermost = sim->options.cost.pp_outermost;
	for (int r = 0; r < ranks; r++) {
		int stage = outermost ? r / group / l->dp : r / group % l->pp;
		int replica = outermost ? r / group % l->dp : r / group / l->pp;
		double *slow = &sim->slow[(sim->options.plan.dynamic_cp > 0 ? 0 : replica * l->pp) + stage];
		*slow = fmax(*slow, sim->options.slowdown != NULL ? sim->options.slowdown[r] : 1.0);
	}
}

static int allocate(struct wlb_sim *sim)
{
	const struct wlb_plan *plan = &sim->options.plan;
	size_t pp = (size_t)plan->layout.pp, dp = (size_t)plan->layout.dp;
	size_t ranks = (size_t)wlb_plan_document_ranks(plan);
	size_t passes = wlb_sim_pipeline_passes(plan), m = (size_t)plan->micro_batches;
	size_t chunks = pp * (size_t)plan->interleave, lanes = plan->dynamic_cp > 0 ? ranks : 1;
	struct wlb_sim_pipeline *p = &sim->pipeline;
	sim->event_count = sim->options.timeline ? wlb_sim_pipeline_events(plan) * dp : 0;
	struct {
		void *array;
		size_t count, size;
	} wanted[] = {
		{&sim->slow, pp * dp, sizeof(*sim->slow)},
		{&sim->loads, m * dp, sizeof(*sim->loads)},
		{&sim->layers, chunks, sizeof(*sim->layers)},
		{&sim->rank_s, ranks, sizeof(*sim->rank_s)},
		{&sim->rank_bytes, ranks, sizeof(*sim->rank_bytes)},
		{&sim->rank_keys, ranks, sizeof(*sim->rank_keys)},
		{&sim->rank_loads, ranks, sizeof(*sim->rank_loads)},
		{&sim->chunk_start_s, chunks, sizeof(*sim->chunk_start_s)},
		{&sim->chunk_end_s, chunks, sizeof(*sim->chunk_end_s)},
		{&sim->events, sim->event_count, sizeof(*sim->events)},
		{&p->order, wlb_sim_pipeline_events(plan), sizeof(*p->order)},
		{&p->forward_s, passes * lanes, sizeof(*p->forward_s)},
		{&p->backward_s, passes * lanes, sizeof(*p->backward_s)},
		{&p->forward_end_s, passes * lanes, sizeof(*p->forward_end_s)},
		{&p->backward_end_s, passes * lanes, sizeof(*p->backward_end_s)},
		{&p->send_s, pp * m, sizeof(*p->send_s)},
		{&p->head_s, pp * m, sizeof(*p->head_s)},
		{&p->head_send_s, pp * m, sizeof(*p->head_send_s)},
		{&p->head_end_s, pp * m * lanes, sizeof(*p->head_end_s)},
		{&p->stage_end_s, pp * lanes, sizeof(*p->stage_end_s)},
		{&p->next, pp, sizeof(*p->next)},
		{&p->first_lane, m * lanes, sizeof(*p->first_lane)},
		{&sim->lanes, m * lanes, sizeof(*sim->lanes)},
		{&p->last_start_s, chunks, sizeof(*p->last_start_s)},
		{&p->last_end_s, chunks, sizeof(*p->last_end_s)},
	};
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		void *array = calloc(wanted[i].count + 1, wanted[i].size);
		if (array == NULL)
			return -1;
		memcpy(wanted[i].array, &array, sizeof(array));
	}
	return 0;
}

struct wlb_sim *wlb_sim_new(const struct wlb_model *model, const struct wlb_machine *machine,
                            const struct wlb_sim_options *options, struct wlb_error *error)
{
	if (wlb_model_check(model, error) < 0 || wlb_machine_check(machine, error) < 0 ||
	    wlb_plan_check(&options->plan, model, error) < 0 || check_options(options, error) < 0 ||
	    wlb_recompute_set_check(options->plan.recompute, model, &options->cost, error) < 0 ||
	    wlb_machine_fp8_check(machine, options->cost.fp8, error) < 0)
		return NULL;
	struct wlb_sim *sim = calloc(1, sizeof(*sim));
	if (sim != NULL) {
		sim->model = *model;
		sim->machine = *machine;
		sim->options = *options;
		sim->ranks = options->plan.layout.cp;
		sim->pipeline.plan = options->plan;
		sim->pipeline.overlap_pp = options->cost.overlap_pp;
	}
	if (sim == NULL || allocate(sim) < 0) {
		wlb_sim_free(sim);
		wlb_fail(error, "out of memory for the simulation of %d GPUs, %d micro-batches each",
		         wlb_layout_ranks(&options->plan.layout), options->plan.micro_batches);
		return NULL;
	}
	wlb_sim_pipeline_order(&sim->pipeline);
	wlb_sim_set_layers(sim);
	find_groups(sim);
	set_costs(sim);
	wlb_sim_set_token_s(sim);
	set_slowdown(sim);
	return sim;
}

void wlb_sim_free(struct wlb_sim *sim)
{
	if (sim == NULL)
		return;
	struct wlb_sim_pipeline *p = &sim->pipeline;
	wlb_placer_free(sim->placer);
	void *arrays[] = {sim->slow,          sim->loads,       sim->rank_s,      sim->rank_bytes,   sim->rank_loads,
	                  sim->chunk_start_s, sim->chunk_end_s, sim->events,      sim->tokens,       sim->places,
	                  p->forward_s,       p->backward_s,    p->forward_end_s, p->backward_end_s, p->send_s,
	                  p->stage_end_s,     p->next,          p->last_start_s,  p->last_end_s,     p->head_s,
	                  p->head_send_s,     p->head_end_s,    p->order,         sim->layers,       sim->rank_keys,
	                  sim->lanes,         p->first_lane};
	for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
		free(arrays[i]);
	free(sim);
}

const struct wlb_sim_event *wlb_sim_timeline(const struct wlb_sim *sim, size_t *count)
{
	*count = sim->options.timeline ? wlb_sim_pipeline_events(&sim->options.plan) * (size_t)sim->replicas : 0;
	return sim->events;
}

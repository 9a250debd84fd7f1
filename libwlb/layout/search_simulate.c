/* A candidate's step time, from the documents of the samples assigned again to its micro-batches. */
#include "libwlb/layout/search_simulate.h"

#include <stdlib.h>

#include "libwlb/layout/search_pack.h"

/* Micro-batches that are simulated for a candidate: of all replicas; of one, at least this many times pp, so that the
 * pipeline is in its steady state for most of the time. */
enum { WANTED_MICRO_BATCHES = 64, WANTED_ROUNDS = 3 };

/* The switch of each full node of ranks: ranks fill nodes in the topology's order, tp by tp. */
static int32_t *leaves_of(const struct wlb_search *search, const struct wlb_plan *plan, int32_t gpus)
{
	int ranks = wlb_layout_ranks(&plan->layout);
	size_t nodes = (size_t)(ranks + gpus - 1) / (size_t)gpus;
	int32_t *leaf = calloc(nodes, sizeof(*leaf));
	if (leaf == NULL)
		return NULL;
	int64_t before = 0; /* ranks on the nodes before this place */
	for (int32_t place = 0; place < search->options.nodes; place++) {
		int64_t here = search->usable[search->order[place]] / plan->layout.tp * plan->layout.tp;
		for (int64_t r = (before + gpus - 1) / gpus; r * gpus < before + here && r < (int64_t)nodes; r++)
			leaf[r] = search->leaf[place];
		before += here;
	}
	return leaf;
}

/* Scales the times of passes and of their waits, which grow with the number of micro-batches, but not those of the
 * pipeline's start and end, the gradients and the optimizer. */
static void scale_time(const struct wlb_sim_time *time, double times, struct wlb_candidate *c)
{
	c->time = *time;
	double *grows[] = {&c->time.compute_s, &c->time.recompute_s,    &c->time.tp_s,
	                   &c->time.cp_s,      &c->time.cp_imbalance_s, &c->time.imbalance_s};
	for (size_t i = 0; i < sizeof(grows) / sizeof(grows[0]); i++) {
		c->time.step_s += *grows[i] * (times - 1.0);
		*grows[i] *= times;
	}
	c->step_s = c->time.step_s;
}

/* Returns the number of micro-batches simulated for one replica. */
static int32_t simulated_micro_batches(const struct wlb_plan *plan)
{
	int32_t pp = plan->layout.pp;
	int32_t wanted = WANTED_ROUNDS * pp > WANTED_MICRO_BATCHES ? WANTED_ROUNDS * pp : WANTED_MICRO_BATCHES;
	wanted = (wanted + pp - 1) / pp * pp;
	return plan->micro_batches < wanted ? plan->micro_batches : wanted;
}

static int simulate(const struct wlb_search *search, struct wlb_candidate *c, int32_t micro_batches,
                    const struct wlb_step *step, struct wlb_error *error)
{
	struct wlb_machine machine = search->machine;
	/* Ranks fill what tp leaves of the emptiest node. */
	machine.gpus_per_node = search->most_usable / c->plan.layout.tp * c->plan.layout.tp;
	int32_t *leaf = leaves_of(search, &c->plan, machine.gpus_per_node);
	if (leaf == NULL)
		return wlb_fail(error, "out of memory for the switches of %d nodes", search->options.nodes);
	struct wlb_sim_options options;
	wlb_sim_options_init(&options, &c->plan);
	options.sharding = search->options.sharding;
	options.dynamic = search->options.dynamic;
	options.cost = search->options.cost;
	options.leaf = leaf;
	options.timeline = 0;
	options.plan.micro_batches = micro_batches;
	struct wlb_sim *sim = wlb_sim_new(&search->model, &machine, &options, error);
	struct wlb_sim_result result;
	int rc = sim == NULL ? -1 : wlb_sim_step(sim, step, &result, error);
	if (rc == 0) {
		double times = (double)c->plan.micro_batches / micro_batches;
		scale_time(&result.time, times, c);
		c->tokens_per_s = search->work.tokens / c->step_s;
		c->utilization = result.utilization * result.time.step_s * times / c->step_s;
	}
	wlb_sim_free(sim);
	free(leaf);
	return rc;
}

int wlb_search_simulate(struct wlb_search *search, struct wlb_candidate *c, struct wlb_error *error)
{
	int32_t m = simulated_micro_batches(&c->plan), dp = c->plan.layout.dp;
	int32_t replicas = m < WANTED_MICRO_BATCHES ? WANTED_MICRO_BATCHES / m : 1;
	replicas = replicas < dp ? replicas : dp;
	double windows = search->options.global_batch / ((double)c->plan.micro_batches * dp);
	const struct wlb_search_packing *packing = wlb_search_pack(search, windows, replicas * m, error);
	if (packing == NULL)
		return -1;
	if (!packing->fits)
		return 0;
	const struct wlb_step step = {.micro_batches = replicas * m, .spans = packing->spans, .count = packing->count};
	if (!search->options.charge_limit)
		c->micro_batch_tokens = packing->longest;
	return simulate(search, c, m, &step, error);
}

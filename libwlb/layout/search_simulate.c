/* A candidate's step time, from the documents of the samples assigned again to its micro-batches. */
#include "libwlb/layout/search_state.h"

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
static void scale_time(struct wlb_sim_time *time, double times)
{
	double *grows[] = {&time->compute_s, &time->recompute_s,    &time->tp_s,       &time->cp_s,
	                   &time->ep_s,      &time->cp_imbalance_s, &time->imbalance_s};
	for (size_t i = 0; i < sizeof(grows) / sizeof(grows[0]); i++) {
		time->step_s += *grows[i] * (times - 1.0);
		*grows[i] *= times;
	}
}

/* The sums over the draws that were simulated. */
struct outcome {
	struct wlb_sim_time time;
	double utilized_s; /* utilization, times the seconds of all micro-batches */
	int count;
};

static void add_time(struct wlb_sim_time *sum, const struct wlb_sim_time *time)
{
	double *to = &sum->step_s;
	const double *from = &time->step_s;
	for (size_t i = 0; i < sizeof(*sum) / sizeof(double); i++)
		to[i] += from[i];
}

_Static_assert(sizeof(struct wlb_sim_time) == 13 * sizeof(double), "add_time takes it for an array of doubles");

static void set_means(const struct wlb_search *search, const struct outcome *outcome, struct wlb_candidate *c)
{
	double *mean = &c->time.step_s;
	c->time = outcome->time;
	for (size_t i = 0; i < sizeof(c->time) / sizeof(double); i++)
		mean[i] /= outcome->count;
	c->step_s = c->time.step_s;
	c->tokens_per_s = search->work.tokens / c->step_s;
	c->utilization = outcome->utilized_s / outcome->count / c->step_s;
}

/* Returns the number of micro-batches simulated for one replica. */
static int32_t simulated_micro_batches(const struct wlb_plan *plan)
{
	int32_t pp = plan->layout.pp;
	int32_t wanted = WANTED_ROUNDS * pp > WANTED_MICRO_BATCHES ? WANTED_ROUNDS * pp : WANTED_MICRO_BATCHES;
	wanted = (wanted + pp - 1) / pp * pp;
	return plan->micro_batches < wanted ? plan->micro_batches : wanted;
}

/* Adds the time of a candidate's step with the documents of a packing. */
static int simulate(struct wlb_sim *sim, double times, const struct wlb_search_packing *packing,
                    struct outcome *outcome, struct wlb_error *error)
{
	struct wlb_sim_result result;
	const struct wlb_step step = {
		.micro_batches = packing->of.bins, .spans = packing->spans, .count = packing->count};
	if (wlb_sim_step(sim, &step, &result, error) < 0)
		return -1;
	outcome->utilized_s += result.utilization * result.time.step_s * times;
	scale_time(&result.time, times);
	add_time(&outcome->time, &result.time);
	outcome->count++;
	return 0;
}

/* Ranks fill what tp leaves of the emptiest node. */
static int32_t ranks_of_node(const struct wlb_search *search, const struct wlb_plan *plan)
{
	return search->most_usable / plan->layout.tp * plan->layout.tp;
}

static struct wlb_sim *new_sim(const struct wlb_search *search, const struct wlb_candidate *c, int32_t micro_batches,
                               const int32_t *leaf, struct wlb_error *error)
{
	const struct wlb_plan *plan = &c->plan;
	struct wlb_machine machine = search->machine;
	struct wlb_sim_options options;
	machine.gpus_per_node = ranks_of_node(search, plan);
	wlb_sim_options_init(&options, plan);
	options.sharding = search->options.sharding;
	options.attention = search->options.dynamic ? WLB_SIM_DYNAMIC : WLB_SIM_SHARDED;
	options.cost = search->options.cost;
	options.leaf = leaf;
	options.timeline = 0;
	options.plan.micro_batches = micro_batches;
	if (plan->dynamic_cp > 0)
		options.rank_tokens = (c->micro_batch_tokens + plan->layout.cp - 1) / plan->layout.cp;
	return wlb_sim_new(&search->model, &machine, &options, error);
}

/* Simulates each draw. */
static int simulate_draws(struct wlb_search *search, struct wlb_candidate *c, int32_t micro_batches,
                          struct wlb_sim *sim, struct wlb_error *error)
{
	int32_t dp = c->plan.layout.dp;
	int32_t replicas = micro_batches < WANTED_MICRO_BATCHES ? WANTED_MICRO_BATCHES / micro_batches : 1;
	int32_t bins = (replicas < dp ? replicas : dp) * micro_batches;
	double windows = search->options.global_batch / ((double)c->plan.micro_batches * dp);
	struct wlb_search_draw of = {.windows = windows, .fill = search->options.batch_fill, .bins = bins};
	of.draws = wlb_search_draws(search, &of);
	struct outcome outcome = {.count = 0};
	int64_t longest = 0;
	for (; of.draw < of.draws; of.draw++) {
		const struct wlb_search_packing *packing = wlb_search_pack(search, &of, error);
		if (packing == NULL)
			return -1;
		if (simulate(sim, (double)c->plan.micro_batches / micro_batches, packing, &outcome, error) < 0)
			return -1;
		longest = packing->longest > longest ? packing->longest : longest;
	}
	if (!search->options.charge_limit)
		c->micro_batch_tokens = longest;
	set_means(search, &outcome, c);
	return 0;
}

int wlb_search_simulate(struct wlb_search *search, struct wlb_candidate *c, struct wlb_error *error)
{
	int32_t micro_batches = simulated_micro_batches(&c->plan);
	int32_t *leaf = leaves_of(search, &c->plan, ranks_of_node(search, &c->plan));
	if (leaf == NULL)
		return wlb_fail(error, "out of memory for the switches of %d nodes", search->options.nodes);
	struct wlb_sim *sim = new_sim(search, c, micro_batches, leaf, error);
	int rc = sim != NULL ? simulate_draws(search, c, micro_batches, sim, error) : -1;
	wlb_sim_free(sim);
	free(leaf);
	return rc;
}

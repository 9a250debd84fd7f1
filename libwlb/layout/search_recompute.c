#include "libwlb/layout/search_recompute.h"

#include <math.h>

static struct wlb_memory memory_of(const struct wlb_search *search, const struct wlb_candidate *c, int32_t stage)
{
	const struct wlb_search_options *o = &search->options;
	return wlb_memory_stage_of(&c->plan, &search->model, &search->machine, &o->cost, stage, c->micro_batch_tokens,
	                           search->longest);
}

/* Charges the stage where it needs more than those before. */
static void set_stage_memory(const struct wlb_search *search, struct wlb_candidate *c, int32_t stage)
{
	struct wlb_memory memory = memory_of(search, c, stage);
	if (stage > 0 && memory.reserved <= c->memory.reserved)
		return;
	c->memory = memory;
	c->stage = stage;
}

/* Sets the candidate's memory, which is the memory of the stage that needs most, and the bytes that are missing, from
 * the candidate's plan and its micro_batch_tokens. The stage is the first, with the most micro-batches in flight, or
 * the last, with the logits. */
static void set_memory(const struct wlb_search *search, struct wlb_candidate *c)
{
	int32_t last = c->plan.layout.pp - 1;
	set_stage_memory(search, c, 0);
	/* Where the embedding counts as a layer, the second stage has a layer more than the first. */
	if (c->plan.account_for_embedding && last > 1)
		set_stage_memory(search, c, 1);
	if (last > 0)
		set_stage_memory(search, c, last);
	c->missing_bytes = fmax(0.0, c->memory.reserved - search->machine.memory_bytes);
}

/* Layers of the largest chunk. */
static int32_t chunk_layers(const struct wlb_search *search, const struct wlb_plan *plan)
{
	int64_t places = (int64_t)plan->layout.pp * plan->interleave;
	int64_t layers = search->model.num_hidden_layers + plan->account_for_embedding + plan->account_for_loss;
	int64_t most = (layers + places - 1) / places;
	return (int32_t)(most < search->model.num_hidden_layers ? most : search->model.num_hidden_layers);
}

/* Finds by bisection the fewest layers of each chunk that fit: memory falls with their number, and all of them fit. */
static void recompute_fewest(const struct wlb_search *search, struct wlb_candidate *c)
{
	int32_t fits = chunk_layers(search, &c->plan), misses = 0;
	struct wlb_candidate best = *c;
	while (fits - misses > 1) {
		int32_t layers = misses + (fits - misses) / 2;
		c->plan.recompute_layers = layers;
		set_memory(search, c);
		if (c->missing_bytes > 0.0) {
			misses = layers;
		} else {
			fits = layers;
			best = *c;
		}
	}
	*c = best;
}

enum wlb_recompute wlb_search_least_recompute(const struct wlb_search *search, const struct wlb_candidate *c)
{
	struct wlb_memory memory = memory_of(search, c, 0);
	double states = memory.weights + memory.gradients + memory.optimizer;
	double least_bytes = states * (1.0 + search->options.cost.fragmentation) + memory.runtime;
	return least_bytes > search->machine.memory_bytes ? WLB_RECOMPUTE_FULL : WLB_RECOMPUTE_NONE;
}

/* Returns the set that is tried after `set`; *next counts those of the options that were tried or left out. */
static enum wlb_recompute more_recomputed(const struct wlb_search *search, enum wlb_recompute set, int *next)
{
	const int32_t *sets = search->options.cost.recompute_sets;
	if (set == WLB_RECOMPUTE_NONE)
		return WLB_RECOMPUTE_SELECTIVE;
	while (*next < WLB_RECOMPUTE_SETS && sets[*next] != 0) {
		set = (enum wlb_recompute)sets[(*next)++];
		if (wlb_recompute_set_check(set, &search->model, NULL, NULL) == 0)
			return set;
	}
	return WLB_RECOMPUTE_FULL;
}

void wlb_search_recompute(const struct wlb_search *search, enum wlb_recompute least, struct wlb_candidate *c)
{
	const struct wlb_search_options *options = &search->options;
	int fixed = options->fixed.recompute, next = 0;
	enum wlb_recompute most = fixed >= 0 ? (enum wlb_recompute)fixed : WLB_RECOMPUTE_FULL;
	c->plan.recompute_layers = options->fixed.recompute_layers;
	c->plan.recompute = fixed >= 0 ? most : least;
	set_memory(search, c);
	while (c->missing_bytes > 0.0 && c->plan.recompute != most) {
		c->plan.recompute = more_recomputed(search, c->plan.recompute, &next);
		set_memory(search, c);
	}
	if (fixed < 0 && c->plan.recompute == WLB_RECOMPUTE_FULL && c->missing_bytes == 0.0)
		recompute_fewest(search, c);
}

double wlb_search_recomputed_share(const struct wlb_search *search, const struct wlb_plan *plan)
{
	if (plan->recompute != WLB_RECOMPUTE_FULL)
		return 0.0;
	if (plan->recompute_layers == 0)
		return 1.0;
	return fmin(1.0, (double)plan->recompute_layers / chunk_layers(search, plan));
}

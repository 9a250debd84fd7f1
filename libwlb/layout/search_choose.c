/* Chooses the best of the plans that were found, by simulation. */
#include <math.h>
#include <stdlib.h>

#include "libwlb/layout/search_recompute.h"
#include "libwlb/layout/search_state.h"

/* Writes where the plan's ranks run and which GPUs stay idle; each array has one element for each usable GPU. */
static void place_ranks(const struct wlb_search *search, const struct wlb_plan *plan, struct wlb_search_result *result,
                        int32_t *rank_node, int32_t *rank_gpu, int32_t *idle_node, int32_t *idle_gpu)
{
	int ranks = wlb_layout_ranks(&plan->layout), tp = plan->layout.tp;
	for (int32_t place = 0; place < search->options.nodes; place++) {
		int32_t node = search->order[place], whole = search->usable[node] / tp * tp;
		for (int32_t gpu = 0; gpu < search->usable[node]; gpu++) {
			int used = gpu < whole && result->ranks < ranks;
			int32_t *count = used ? &result->ranks : &result->idle;
			(used ? rank_node : idle_node)[*count] = node;
			(used ? rank_gpu : idle_gpu)[(*count)++] = gpu;
		}
	}
	result->rank_node = rank_node;
	result->rank_gpu = rank_gpu;
	result->idle_node = idle_node;
	result->idle_gpu = idle_gpu;
}

/* The values that plans are sorted by; small, since there may be many. */
struct key {
	double estimate_s;
	int is_between; /* its interleaving is between two powers of two */
	int is_tried;   /* it was simulated, or cannot be the best */
	struct wlb_search_plan *plan;
};

/* The plans of a search in the order in which they are tried, and those that were simulated or do not fit. */
struct choice {
	struct wlb_search *search;
	struct wlb_search_result *result;
	struct key *keys; /* of `fitting` plans that fit */
	size_t fitting;
	const struct wlb_search_plan **simulated; /* with a step time */
	size_t simulated_count;
	const struct wlb_search_plan **misfits;
	size_t misfit_count;
};

/* Orders plans by ascending estimate; equal ones as they were found, so that equal inputs give equal results. Of the
 * interleavings of a layout, which differ less than layouts do, 1, 2, 4, 8, ... come first: else those of few layouts
 * would be all that are simulated. */
static int by_estimate(const void *a, const void *b)
{
	const struct key *x = a, *y = b;
	if (x->is_between != y->is_between)
		return x->is_between - y->is_between;
	double p = x->estimate_s, q = y->estimate_s;
	return p != q ? (p < q ? -1 : 1) : (x->plan > y->plan) - (x->plan < y->plan);
}

static int by_time(const void *a, const void *b)
{
	const struct wlb_search_plan *x = *(const struct wlb_search_plan *const *)a;
	const struct wlb_search_plan *y = *(const struct wlb_search_plan *const *)b;
	double p = x->candidate.step_s, q = y->candidate.step_s;
	return p != q ? (p < q ? -1 : 1) : (x > y) - (x < y);
}

/* Divides the plans into those that fit and those that do not. */
static int divide_plans(struct choice *choice)
{
	struct wlb_search *search = choice->search;
	choice->keys = calloc(search->count, sizeof(*choice->keys));
	choice->simulated = calloc(search->count, sizeof(*choice->simulated));
	choice->misfits = calloc(search->count, sizeof(*choice->misfits));
	if (choice->keys == NULL || choice->simulated == NULL || choice->misfits == NULL)
		return -1;
	for (size_t i = 0; i < search->count; i++) {
		struct wlb_search_plan *plan = &search->plans[i];
		int32_t chunks = plan->candidate.plan.interleave;
		if (plan->candidate.missing_bytes > 0.0)
			choice->misfits[choice->misfit_count++] = plan;
		else
			choice->keys[choice->fitting++] =
				(struct key){plan->estimate_s, (chunks & (chunks - 1)) != 0, 0, plan};
	}
	return 0;
}

/* Simulates a plan. Where its longest micro-batch is not as long as was estimated, its memory is computed again: it may
 * need more recomputation or less, or not fit. */
static int try_plan(struct choice *choice, struct wlb_search_plan *plan, struct wlb_error *error)
{
	struct wlb_candidate *c = &plan->candidate;
	int64_t estimated_tokens = c->micro_batch_tokens;
	if (wlb_search_simulate(choice->search, c, error) < 0)
		return -1;
	if (c->micro_batch_tokens != estimated_tokens) {
		const struct wlb_plan before = c->plan;
		wlb_search_recompute(choice->search, WLB_RECOMPUTE_NONE, c);
		if ((c->plan.recompute != before.recompute || c->plan.recompute_layers != before.recompute_layers) &&
		    c->missing_bytes == 0.0 && wlb_search_simulate(choice->search, c, error) < 0)
			return -1;
	}
	if (c->missing_bytes > 0.0) {
		c->step_s = 0.0;
		choice->misfits[choice->misfit_count++] = plan;
		return 0;
	}
	choice->result->simulated++;
	choice->simulated[choice->simulated_count++] = plan;
	return 0;
}

/* Returns how many plans are simulated at most when this one is reached: at first a quarter is left to interleavings
 * that are between two powers of two. */
static int64_t most_simulated(const struct wlb_search_options *options, const struct key *key, int first)
{
	return key->is_between || !first ? options->most_simulated : (3 * (int64_t)options->most_simulated + 3) / 4;
}

/* Tries one plan unless it is tried, cannot be the best, or enough are simulated. Lowers *limit_s. */
static int try_key(struct choice *choice, struct key *key, int first, double *limit_s, struct wlb_error *error)
{
	const struct wlb_search_options *options = &choice->search->options;
	struct wlb_search_result *result = choice->result;
	struct wlb_candidate *c = &key->plan->candidate;
	if (key->is_tried)
		return 0;
	key->is_tried = c->bound_s >= *limit_s || result->simulated < most_simulated(options, key, first);
	if (c->bound_s >= *limit_s) {
		result->pruned++;
		return 0;
	}
	if (!key->is_tried) {
		result->unexplored += !first;
		return 0;
	}
	if (try_plan(choice, key->plan, error) < 0)
		return -1;
	if (c->step_s > 0.0)
		*limit_s = fmin(*limit_s, c->step_s * (1.0 + options->near_equal));
	return 0;
}

/* Tries the first plan, and drops those that cannot be better: most of them, so that few are sorted. */
static int try_first(struct choice *choice, double *limit_s, struct wlb_error *error)
{
	struct key *first = choice->keys;
	size_t kept = 0;
	for (size_t i = 1; i < choice->fitting; i++)
		first = by_estimate(&choice->keys[i], first) < 0 ? &choice->keys[i] : first;
	if (choice->fitting > 0 && try_key(choice, first, 1, limit_s, error) < 0)
		return -1;
	for (size_t i = 0; i < choice->fitting; i++)
		if (choice->keys[i].is_tried || choice->keys[i].plan->candidate.bound_s < *limit_s)
			choice->keys[kept++] = choice->keys[i];
	choice->result->pruned = (int64_t)(choice->fitting - kept);
	choice->fitting = kept;
	return 0;
}

/* Tries, by ascending estimate, the plans whose bound is not above the best step time so far and what is nearly equal
 * to it. */
static int try_plans(struct choice *choice, struct wlb_error *error)
{
	double limit_s = INFINITY;
	if (try_first(choice, &limit_s, error) < 0)
		return -1;
	qsort(choice->keys, choice->fitting, sizeof(*choice->keys), by_estimate);
	for (int first = 1; first >= 0; first--)
		for (size_t i = 0; i < choice->fitting; i++)
			if (try_key(choice, &choice->keys[i], first, &limit_s, error) < 0)
				return -1;
	choice->result->tried = (int64_t)(choice->search->count + choice->search->dropped);
	choice->result->no_memory = (int64_t)(choice->misfit_count + choice->search->dropped);
	return 0;
}

/* Fails with the numbers of the plan that lacks the least memory. */
static int fail_to_fit(const struct choice *choice, struct wlb_error *error)
{
	const struct wlb_search *search = choice->search;
	const struct wlb_candidate *c = &choice->misfits[0]->candidate;
	char layout[64];
	for (size_t i = 1; i < choice->misfit_count; i++)
		if (choice->misfits[i]->candidate.missing_bytes < c->missing_bytes)
			c = &choice->misfits[i]->candidate;
	wlb_layout_format(&c->plan.layout, layout, sizeof(layout));
	const struct wlb_memory *m = &c->memory;
	int can_shard_more = search->options.zero_stage < (search->options.cost.trainer == WLB_COST_WORKER ? 2 : 3);
	return wlb_fail(error,
	                "none of %zu layouts fits: %s misses least, stage %d needs %.1f GB (weights, gradients and "
	                "optimizer %.1f, activations and logits %.1f, buffers %.1f, beside what is allocated %.1f) and "
	                "a rank has %.1f GB; use "
	                "more nodes%s a shorter --seq-length%s",
	                search->count + search->dropped, layout, c->stage, m->reserved / 1e9,
	                (m->weights + m->gradients + m->optimizer) / 1e9, (m->activations + m->logits) / 1e9,
	                m->buffers / 1e9, (m->reserved - m->allocated) / 1e9, search->machine.memory_bytes / 1e9,
	                can_shard_more ? "," : " or", can_shard_more ? ", or a higher stage of ZeRO" : "");
}

/* Copies the first of `count` plans, at most `keep`; *kept receives their number. NULL if out of memory. */
static struct wlb_candidate *copy(const struct wlb_search_plan *const *from, size_t count, size_t keep, size_t *kept)
{
	*kept = count < keep ? count : keep;
	struct wlb_candidate *to = calloc(*kept + 1, sizeof(*to));
	for (size_t i = 0; to != NULL && i < *kept; i++)
		to[i] = from[i]->candidate;
	return to;
}

static int fill_result(struct choice *choice, struct wlb_search_found *found, struct wlb_error *error)
{
	struct wlb_search *search = choice->search;
	const struct wlb_search_options *options = &search->options;
	struct wlb_search_result *r = &found->result;
	qsort(choice->simulated, choice->simulated_count, sizeof(*choice->simulated), by_time);
	r->gpus = search->gpus;
	r->fastest_s = choice->simulated[0]->candidate.step_s;
	r->preferred = wlb_search_prefer(search, choice->simulated, choice->simulated_count);
	wlb_search_group_misfits(search);
	if (wlb_search_order_misfits(choice->misfits, choice->misfit_count) < 0)
		return wlb_fail(error, "out of memory for %zu plans", choice->misfit_count);
	size_t keep = (size_t)options->keep, gpus = (size_t)r->gpus;
	r->ranked = found->ranked = copy(choice->simulated, choice->simulated_count, keep, &r->ranked_count);
	r->misfits = found->misfits = copy(choice->misfits, choice->misfit_count, keep, &r->misfit_count);
	int32_t *places = found->places = calloc(4 * gpus, sizeof(*found->places));
	if (r->ranked == NULL || r->misfits == NULL || places == NULL)
		return wlb_fail(error, "out of memory for the places of %d GPUs", r->gpus);
	place_ranks(search, &r->ranked[0].plan, r, places, places + gpus, places + 2 * gpus, places + 3 * gpus);
	return 0;
}

int wlb_search_choose(struct wlb_search *search, struct wlb_search_found *found, struct wlb_error *error)
{
	struct choice choice = {.search = search, .result = &found->result};
	int rc = divide_plans(&choice) < 0 ? wlb_fail(error, "out of memory for %zu plans", search->count)
	                                   : try_plans(&choice, error);
	if (rc == 0 && choice.simulated_count == 0)
		rc = fail_to_fit(&choice, error);
	if (rc == 0)
		rc = fill_result(&choice, found, error);
	free(choice.keys);
	free(choice.simulated);
	free(choice.misfits);
	return rc;
}

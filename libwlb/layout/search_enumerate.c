/* Enumerates every plan that the machine and the model allow. */
#include <math.h>
#include <stdlib.h>

#include "libwlb/capacity.h"
#include "libwlb/layout/search_pack.h"
#include "libwlb/layout/search_recompute.h"
#include "libwlb/layout/search_split.h"
#include "libwlb/layout/search_state.h"

/* Groups of tp GPUs that fit inside the nodes. */
static int64_t slots_of(const struct wlb_search *search, int32_t tp)
{
	int64_t slots = 0;
	for (int32_t n = 0; n < search->options.nodes; n++)
		slots += search->usable[n] / tp;
	return slots;
}

enum { FEW_WINDOWS = 4 }; /* in a micro-batch: so many are tried on any number of stages */

static int add(struct wlb_search *search, const struct wlb_search_plan *plan, struct wlb_error *error)
{
	if (wlb_grow((void **)&search->plans, &search->capacity, search->count + 1, sizeof(*search->plans)) < 0)
		return wlb_fail(error, "out of memory for %zu plans", search->count + 1);
	search->plans[search->count++] = *plan;
	return 0;
}

/* The value that the caller holds, or `otherwise`. */
static int32_t held(int32_t fixed, int64_t otherwise)
{
	return fixed > 0 ? fixed : (int32_t)otherwise;
}

/* Sets how wlb-worker's ranks divide documents where each is on as many as it needs. */
static void place_documents(const struct wlb_search *search, double windows, struct wlb_candidate *c)
{
	const struct wlb_search_options *options = &search->options;
	const struct wlb_layout *l = &c->plan.layout;
	int64_t all = options->global_batch * options->seq_length, whole = (int64_t)ceil(windows - 1e-9);
	int64_t least = wlb_dynamic_cp_max_tokens(l->dp, options->seq_length, whole);
	if (options->max_tokens == 0 && c->micro_batch_tokens < least)
		c->micro_batch_tokens = least;
	c->micro_batch_tokens = c->micro_batch_tokens < all ? c->micro_batch_tokens : all;
	c->plan.dynamic_cp =
		wlb_dynamic_cp_key_ranks(l, (c->micro_batch_tokens + l->cp - 1) / l->cp, c->plan.micro_batches,
	                                 options->seq_length, options->global_batch);
}

/* Adds the plan with the least recomputation that fits, or the one with the most where none fits. */
static int add_plan(struct wlb_search *search, struct wlb_search_plan found, enum wlb_recompute least,
                    struct wlb_error *error)
{
	const struct wlb_search_options *options = &search->options;
	struct wlb_candidate *c = &found.candidate;
	double windows = (double)options->global_batch / ((double)c->plan.micro_batches * c->plan.layout.dp);
	c->gpus = wlb_layout_ranks(&c->plan.layout);
	if (wlb_plan_check(&c->plan, &search->model, NULL) < 0)
		return 0;
	if (wlb_search_longest(search, windows, &c->micro_batch_tokens, error) < 0)
		return -1;
	if (wlb_search_places(options))
		place_documents(search, windows, c);
	wlb_search_recompute(search, least, c);
	if (c->missing_bytes == 0.0)
		wlb_search_bound(search, &found);
	return add(search, &found, error);
}

static int32_t divide_up(int32_t value, int32_t by)
{
	return (value + by - 1) / by;
}

/* Returns 1 where the trainer takes a number of micro-batches: wlb-worker any, and leaves some of them empty. */
static int takes_micro_batches(const struct wlb_search_options *options, const struct wlb_plan *plan, int32_t windows)
{
	int32_t each = options->global_batch / plan->layout.dp;
	if (options->cost.trainer == WLB_COST_WORKER)
		return 1;
	return each % windows == 0 && (plan->interleave == 1 || each / windows % plan->layout.pp == 0);
}

/* Returns the micro-batches of a replica, of so many windows each where that is enough. */
static int32_t micro_batches_of(const struct wlb_search_options *options, const struct wlb_plan *plan, int32_t windows)
{
	int32_t dp = plan->layout.dp, pp = plan->layout.pp;
	int32_t m = divide_up(divide_up(options->global_batch, dp), windows);
	int64_t least = divide_up(options->least_micro_batches, dp);
	if (wlb_search_places(options) && options->max_tokens > 0)
		least = wlb_dynamic_cp_micro_batches_min(dp, options->max_tokens, options->seq_length,
		                                         options->global_batch);
	m = m > least ? m : (int32_t)least;
	return plan->interleave > 1 ? divide_up(m, pp) * pp : m;
}

/* Returns 1 where a plan was added after the first `count` ones and needs more memory than there is. */
static int misfits(const struct wlb_search *search, size_t count)
{
	return search->count > count && search->plans[search->count - 1].candidate.missing_bytes > 0.0;
}

/* Returns the number of windows of a micro-batch to try after `windows`: of wlb-worker's 1, 2 and 4 are measured
 * (docs/results/auto.md); others take any that divides a replica's share of the batch, of more than a few those that
 * leave each stage a micro-batch. */
static int32_t next_windows(const struct wlb_search *search, const struct wlb_plan *plan, int32_t windows)
{
	int32_t most = search->options.global_batch / plan->layout.dp / plan->layout.pp;
	if (search->options.cost.trainer == WLB_COST_WORKER)
		return windows < FEW_WINDOWS ? 2 * windows : INT32_MAX;
	most = most > FEW_WINDOWS ? most : FEW_WINDOWS;
	for (windows++; windows <= most; windows++)
		if (takes_micro_batches(&search->options, plan, windows))
			return windows;
	return INT32_MAX;
}

/* One micro-batch for each window of the batch, or longer ones. Of those of more than a few windows none is longer than
 * the first that does not fit, and none is longer where one of any length does not fit. */
static int add_micro_batches(struct wlb_search *search, struct wlb_search_plan found, struct wlb_error *error)
{
	struct wlb_plan *plan = &found.candidate.plan;
	int32_t last = 0, fixed = search->options.fixed.micro_batch_windows, most = held(fixed, INT32_MAX - 1);
	enum wlb_recompute least = wlb_search_least_recompute(search, &found.candidate);
	for (int32_t windows = held(fixed, 1); windows <= most; windows = next_windows(search, plan, windows)) {
		int32_t m = micro_batches_of(&search->options, plan, windows);
		if (m == last || !takes_micro_batches(&search->options, plan, windows))
			continue;
		size_t count = search->count;
		last = plan->micro_batches = m;
		if (add_plan(search, found, least, error) < 0)
			return -1;
		if ((windows >= FEW_WINDOWS || least == WLB_RECOMPUTE_FULL) && misfits(search, count))
			break;
	}
	return 0;
}

/* cp fills whole nodes with tp, or parts of one that divide it: neighbours without a gap. */
static int cp_fits(const struct wlb_search *search, int32_t tp, int64_t cp)
{
	int64_t group = tp * cp, gpus = search->machine.gpus_per_node;
	if (search->options.cost.trainer != WLB_COST_WORKER && cp > 1 && search->options.seq_length % (2 * cp) != 0)
		return 0;
	if (search->options.fixed.cp > 0)
		return 1;
	return cp * 2 * search->machine.attention_tile_tokens <= search->options.seq_length || cp == 1
	               ? gpus % group == 0 || group % gpus == 0 || cp == 1
	               : 0;
}

/* Returns the most replicas, up to `most`, that the trainer divides the batch among, wlb-worker among any number, and
 * whose ranks a fixed ep divides. */
static int32_t dividing_replicas(const struct wlb_search_options *options, int32_t cp, int64_t most)
{
	int32_t windows = held(options->fixed.micro_batch_windows, 1), ep = held(options->fixed.ep, 1);
	while (options->cost.trainer != WLB_COST_WORKER && most > 0 &&
	       (options->global_batch % (most * windows) != 0 || cp * most % ep != 0))
		most--;
	return (int32_t)most;
}

/* As many replicas as the GPUs and the batch allow, each with at least one window, or as many as the caller holds.
 * Returns 0 where that is not allowed. */
static int32_t replicas_of(const struct wlb_search *search, int32_t tp, int32_t cp, int32_t pp, int64_t slots)
{
	int64_t stage_slots = (int64_t)cp * pp, most = slots / stage_slots;
	most = most < search->options.global_batch ? most : search->options.global_batch;
	int32_t fixed = search->options.fixed.dp;
	int32_t dp = dividing_replicas(&search->options, cp, held(fixed, most));
	if (dp > most || (fixed > 0 && dp != fixed) ||
	    (search->options.every_gpu && tp * stage_slots * dp != search->gpus))
		return 0;
	return dp;
}

/* With the head on the last stage, and shared by all; with layers divided equally, and with less on the stages at the
 * ends: the others then have more, which may not fit. */
static int add_heads(struct wlb_search *search, struct wlb_plan plan, struct wlb_error *error)
{
	int fixed = search->options.fixed.shared_head, stages = plan.layout.pp;
	for (int32_t shared = 0; shared <= (stages > 1); shared++) {
		if (fixed >= 0 && stages > 1 && fixed != shared)
			continue;
		for (int more = 0; more <= 1; more++) {
			struct wlb_search_plan found = {.candidate.plan = plan};
			found.candidate.plan.shared_head = shared;
			if (wlb_search_split(search, more, &found) == 0 && add_micro_batches(search, found, error) < 0)
				return -1;
		}
	}
	return 0;
}

/* The most chunks of a stage: the embedding and the head with its loss may count as layers too. */
static int64_t most_chunks(const struct wlb_search *search, int32_t pp)
{
	return pp > 1 ? (search->model.num_hidden_layers + 2) / pp : 1;
}

/* Returns the layers of the largest of `places` chunks, where `more` of embedding and head count as layers. */
static int64_t largest_chunk(const struct wlb_search *search, int64_t places, int more)
{
	return (search->model.num_hidden_layers + more + places - 1) / places;
}

/* wlb-worker takes any number of chunks. Of those whose largest chunk has equally many layers the fewest are tried:
 * with more of them only the others are smaller. */
static int takes_chunks(const struct wlb_search *search, int64_t pp, int32_t chunks)
{
	if (search->options.cost.trainer != WLB_COST_WORKER || search->options.fixed.interleave > 0 || chunks == 1)
		return 1;
	for (int more = 0; more <= 2; more++)
		if (largest_chunk(search, pp * chunks, more) < largest_chunk(search, pp * (chunks - 1), more))
			return 1;
	return 0;
}

/* The interleaved pipelines of one layout. */
static int add_chunks(struct wlb_search *search, struct wlb_plan plan, struct wlb_error *error)
{
	const struct wlb_search_fixed *fixed = &search->options.fixed;
	int32_t most = held(fixed->interleave, most_chunks(search, plan.layout.pp));
	for (plan.interleave = held(fixed->interleave, 1); plan.interleave <= most; plan.interleave++)
		if (takes_chunks(search, plan.layout.pp, plan.interleave) && add_heads(search, plan, error) < 0)
			return -1;
	return 0;
}

/* Each ep that divides the experts and the ranks that would hold copies of them. */
static int add_experts(struct wlb_search *search, struct wlb_plan plan, struct wlb_error *error)
{
	int64_t experts = search->model.num_experts > 0 ? search->model.num_experts : 1;
	int64_t ranks = (int64_t)plan.layout.dp * plan.layout.cp, fixed = search->options.fixed.ep;
	int64_t most = fixed > 0 ? fixed : experts < ranks ? experts : ranks;
	for (plan.ep = held((int32_t)fixed, 1); plan.ep <= most; plan.ep++)
		if (experts % plan.ep == 0 && ranks % plan.ep == 0 && add_chunks(search, plan, error) < 0)
			return -1;
	return 0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* The plans from `first` on have one layout. Of the plans among them that do not fit, keeps the few that miss least, as
 * many as a result can have, and drops the others, of which interleaving makes a million. */
static int drop_misfits(struct wlb_search *search, size_t first, struct wlb_error *error)
{
	size_t count = search->count - first, misfits = 0, keep = (size_t)search->options.keep, kept = first;
	double *missing = calloc(count + 1, sizeof(*missing));
	if (missing == NULL)
		return wlb_fail(error, "out of memory for %zu plans", count);
	for (size_t i = first; i < search->count; i++)
		if (search->plans[i].candidate.missing_bytes > 0.0)
			missing[misfits++] = search->plans[i].candidate.missing_bytes;
	if (misfits > keep) {
		qsort(missing, misfits, sizeof(*missing), by_value);
		size_t less = 0, equal = 0;
		while (missing[less] < missing[keep - 1])
			less++;
		for (size_t i = first; i < search->count; i++) {
			double bytes = search->plans[i].candidate.missing_bytes;
			if (bytes < missing[keep - 1] || (bytes == missing[keep - 1] && equal++ < keep - less))
				search->plans[kept++] = search->plans[i];
		}
		search->dropped += search->count - kept;
		search->count = kept;
	}
	free(missing);
	return 0;
}

static int add_pipelines(struct wlb_search *search, int32_t tp, int32_t cp, int64_t slots, struct wlb_error *error)
{
	const struct wlb_search_fixed *fixed = &search->options.fixed;
	int64_t most = slots / cp < search->model.num_hidden_layers ? slots / cp : search->model.num_hidden_layers;
	for (int32_t pp = held(fixed->pp, 1); pp <= most && pp <= held(fixed->pp, most); pp++) {
		struct wlb_plan plan = {.layout = {tp, cp, pp, 1}, .zero_stage = search->options.zero_stage};
		plan.layout.dp = replicas_of(search, tp, cp, pp, slots);
		if (pp > 1 && plan.zero_stage > 1)
			plan.zero_stage = 1;
		size_t first = search->count;
		if (plan.layout.dp > 0 &&
		    (add_experts(search, plan, error) < 0 || drop_misfits(search, first, error) < 0))
			return -1;
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

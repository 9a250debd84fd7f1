#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libwlb/layout/search_enumerate.h"
#include "libwlb/layout/search_fixed.h"
#include "libwlb/layout/search_place.h"
#include "libwlb/layout/search_simulate.h"
#include "libwlb/layout/search_state.h"

/* The result and the memory it points into. */
struct found {
	struct wlb_search_result result;
	struct wlb_candidate *ranked, *misfits;
	int32_t *places; /* rank_node, rank_gpu, idle_node, idle_gpu, each of `gpus` entries */
};

void wlb_search_options_init(struct wlb_search_options *options, int32_t nodes, int64_t seq_length,
                             int32_t global_batch)
{
	*options = (struct wlb_search_options){
		.nodes = nodes,
		.seq_length = seq_length,
		.global_batch = global_batch,
		.max_length_ratio = 1.25,
		.memory_margin = 0.1,
		.max_interleave = 4,
		.zero_stage = 1,
		.sharding = WLB_SHARDING_ADAPTIVE,
		.fixed.recompute = -1,
		.keep = 10,
		.most_simulated = 256,
	};
	wlb_cost_options_init(&options->cost);
}

static int check_count(const char *field, int64_t value, int64_t least, int64_t most, struct wlb_error *error)
{
	if (value >= least && value <= most)
		return 0;
	return wlb_fail(error, "%s is %lld: it must be between %lld and %lld", field, (long long)value,
	                (long long)least, (long long)most);
}

static int check(const struct wlb_search_options *o, const struct wlb_machine *machine, struct wlb_error *error)
{
	if (check_count("nodes", o->nodes, 1, 1 << 17, error) < 0 ||
	    check_count("seq_length", o->seq_length, 1, 1 << 30, error) < 0 ||
	    check_count("global_batch", o->global_batch, 1, 1 << 20, error) < 0 ||
	    check_count("max_interleave", o->max_interleave, 1, 64, error) < 0 ||
	    check_count("zero_stage", o->zero_stage, 0, 3, error) < 0 ||
	    check_count("keep", o->keep, 1, 1 << 16, error) < 0 ||
	    check_count("most_simulated", o->most_simulated, 1, 1 << 24, error) < 0)
		return -1;
	if (!(o->max_length_ratio >= 1.0 && o->max_length_ratio <= 64.0))
		return wlb_fail(error, "max_length_ratio is %g: it must lie between 1 and 64", o->max_length_ratio);
	if (!(o->memory_margin >= 0.0 && o->memory_margin <= 10.0))
		return wlb_fail(error, "memory_margin is %g: it must lie between 0 and 10", o->memory_margin);
	for (int32_t n = 0; o->gpus_of_node != NULL && n < o->nodes; n++)
		if (o->gpus_of_node[n] < 0 || o->gpus_of_node[n] > machine->gpus_per_node)
			return wlb_fail(error, "node %d has %d GPUs: it must be between 0 and gpus_per_node, %d", n,
			                o->gpus_of_node[n], machine->gpus_per_node);
	return 0;
}

/* Reads the documents of the samples and sets the work of a step of the global batch. */
static int read_samples(struct wlb_search *search, struct wlb_error *error)
{
	const struct wlb_search_options *o = &search->options;
	size_t count = 0;
	for (size_t s = 0; s < o->samples; s++)
		count += o->sample[s].count;
	search->tokens = calloc(count + 1, sizeof(*search->tokens));
	if (search->tokens == NULL)
		return wlb_fail(error, "out of memory for %zu documents", count);
	double tokens = 0.0, pairs = 0.0;
	for (size_t s = 0; s < o->samples; s++)
		for (size_t i = 0; i < o->sample[s].count; i++) {
			int64_t length = o->sample[s].spans[i].span.tokens;
			if (length < 1)
				continue;
			search->tokens[search->documents++] = length;
			search->longest = length > search->longest ? length : search->longest;
			tokens += (double)length;
			search->tokens_of_length[63 - __builtin_clzll((unsigned long long)length)] += (double)length;
			pairs += (double)length * ((double)length + 1.0) / 2.0;
		}
	if (search->documents == 0)
		return wlb_fail(error, "the samples hold no document: give at least one packed batch");
	if (search->longest > o->seq_length)
		return wlb_fail(error, "a document of the samples has %lld tokens: at most seq_length, %lld",
		                (long long)search->longest, (long long)o->seq_length);
	search->work.tokens = (double)o->global_batch * (double)o->seq_length;
	search->work.pairs = pairs * search->work.tokens / tokens;
	return 0;
}

static int read_nodes(struct wlb_search *search, struct wlb_error *error)
{
	const struct wlb_search_options *o = &search->options;
	size_t nodes = (size_t)o->nodes;
	search->usable = calloc(nodes, sizeof(*search->usable));
	search->order = calloc(nodes, sizeof(*search->order));
	search->leaf = calloc(nodes, sizeof(*search->leaf));
	if (search->usable == NULL || search->order == NULL || search->leaf == NULL)
		return wlb_fail(error, "out of memory for %d nodes", o->nodes);
	for (size_t n = 0; n < nodes; n++) {
		search->usable[n] = o->gpus_of_node != NULL ? o->gpus_of_node[n] : search->machine.gpus_per_node;
		search->gpus += search->usable[n];
		if (search->usable[n] > search->most_usable)
			search->most_usable = search->usable[n];
	}
	if (search->most_usable == 0)
		return wlb_fail(error, "none of the %d nodes has a usable GPU", o->nodes);
	return wlb_topology_order(o->topology, o->nodes, search->order, search->leaf, error);
}

/* Orders plans that fit first, by ascending guess, then the others, by missing bytes. Ties are broken by the plan, so
 * that equal inputs give equal results. */
static int by_guess(const void *a, const void *b)
{
	const struct wlb_search_plan *x = a, *y = b;
	double p = x->candidate.missing_bytes, q = y->candidate.missing_bytes;
	if (p == q) {
		p = x->guess_s;
		q = y->guess_s;
	}
	return p != q ? (p < q ? -1 : 1) : memcmp(&x->candidate.plan, &y->candidate.plan, sizeof(x->candidate.plan));
}

/* Orders simulated plans first, by step time. */
static int by_time(const void *a, const void *b)
{
	const struct wlb_search_plan *x = a, *y = b;
	double p = x->candidate.step_s > 0.0 ? x->candidate.step_s : INFINITY;
	double q = y->candidate.step_s > 0.0 ? y->candidate.step_s : INFINITY;
	return p != q ? (p < q ? -1 : 1) : memcmp(&x->candidate.plan, &y->candidate.plan, sizeof(x->candidate.plan));
}

/* Simulates, by ascending guess, the plans whose bound is below the best step time so far. */
static int simulate_all(struct wlb_search *search, size_t fitting, struct wlb_search_result *result,
                        struct wlb_error *error)
{
	double best_s = INFINITY;
	for (size_t i = 0; i < fitting; i++) {
		struct wlb_candidate *c = &search->plans[i].candidate;
		if (c->bound_s >= best_s) {
			result->pruned++;
			continue;
		}
		if (result->simulated >= search->options.most_simulated) {
			result->unexplored++;
			continue;
		}
		if (wlb_search_simulate(search, c, error) < 0)
			return -1;
		result->simulated++;
		if (c->step_s > 0.0 && c->step_s < best_s)
			best_s = c->step_s;
	}
	return 0;
}

static int fail_to_fit(const struct wlb_search *search, struct wlb_error *error)
{
	if (search->count == 0)
		return wlb_search_fail_fixed(search, error);
	const struct wlb_candidate *c = &search->plans[0].candidate;
	char layout[64];
	wlb_layout_format(&c->plan.layout, layout, sizeof(layout));
	if (c->missing_bytes == 0.0)
		return wlb_fail(error,
		                "no layout has space for the documents of the samples in its micro-batches: "
		                "raise max_length_ratio, %g",
		                search->options.max_length_ratio);
	return wlb_fail(error,
	                "none of %zu layouts fits: %s misses least, stage %d needs %.1f GB and a GPU has %.1f GB; use "
	                "more GPUs, a shorter seq_length, or ZeRO",
	                search->count, layout, c->stage, c->memory.total / 1e9, search->machine.memory_bytes / 1e9);
}

static struct wlb_candidate *copy(const struct wlb_search_plan *from, size_t count)
{
	struct wlb_candidate *to = calloc(count + 1, sizeof(*to));
	for (size_t i = 0; to != NULL && i < count; i++)
		to[i] = from[i].candidate;
	return to;
}

static int fill_result(struct wlb_search *search, size_t fitting, struct found *found, struct wlb_error *error)
{
	struct wlb_search_result *r = &found->result;
	size_t keep = (size_t)search->options.keep, ranked = 0;
	qsort(search->plans, fitting, sizeof(*search->plans), by_time);
	while (ranked < fitting && ranked < keep && search->plans[ranked].candidate.step_s > 0.0)
		ranked++;
	if (ranked == 0)
		return fail_to_fit(search, error);
	r->gpus = search->gpus;
	size_t misfits = search->count - fitting;
	r->ranked_count = ranked;
	r->misfit_count = misfits < keep ? misfits : keep;
	found->ranked = copy(search->plans, r->ranked_count);
	found->misfits = copy(search->plans + fitting, r->misfit_count);
	found->places = calloc(4 * (size_t)r->gpus, sizeof(*found->places));
	if (found->ranked == NULL || found->misfits == NULL || found->places == NULL)
		return wlb_fail(error, "out of memory for the places of %d GPUs", r->gpus);
	r->ranked = found->ranked;
	r->misfits = found->misfits;
	int32_t *places = found->places;
	wlb_search_place(search, &r->ranked[0].plan, r, places, places + r->gpus, places + 2 * (size_t)r->gpus,
	                 places + 3 * (size_t)r->gpus);
	return 0;
}

static int run(struct wlb_search *search, struct found *found, struct wlb_error *error)
{
	if (read_samples(search, error) < 0 || read_nodes(search, error) < 0 ||
	    wlb_search_check_fixed(search, error) < 0 || wlb_search_enumerate(search, error) < 0)
		return -1;
	if (search->count == 0)
		return fail_to_fit(search, error);
	qsort(search->plans, search->count, sizeof(*search->plans), by_guess);
	size_t fitting = 0;
	while (fitting < search->count && search->plans[fitting].candidate.missing_bytes == 0.0)
		fitting++;
	found->result.tried = (int64_t)search->count;
	found->result.no_memory = (int64_t)(search->count - fitting);
	if (fitting == 0)
		return fail_to_fit(search, error);
	if (simulate_all(search, fitting, &found->result, error) < 0)
		return -1;
	return fill_result(search, fitting, found, error);
}

struct wlb_search_result *wlb_search(const struct wlb_model *model, const struct wlb_machine *machine,
                                     const struct wlb_search_options *options, struct wlb_error *error)
{
	if (wlb_model_check(model, error) < 0 || wlb_machine_check(machine, error) < 0 ||
	    check(options, machine, error) < 0)
		return NULL;
	struct wlb_search search = {.model = *model, .machine = *machine, .options = *options};
	struct found *found = calloc(1, sizeof(*found));
	int rc = found == NULL ? wlb_fail(error, "out of memory for the search") : run(&search, found, error);
	free(search.tokens);
	free(search.order);
	free(search.leaf);
	free(search.usable);
	free(search.plans);
	if (rc == 0)
		return &found->result;
	wlb_search_free(found != NULL ? &found->result : NULL);
	return NULL;
}

void wlb_search_free(struct wlb_search_result *result)
{
	struct found *found = (struct found *)result; /* the result is its first member */
	if (found == NULL)
		return;
	free(found->ranked);
	free(found->misfits);
	free(found->places);
	free(found);
}

/* Searches the best plan: checks and reads the input, then enumerates the plans and chooses among them. */
#include <stdlib.h>

#include "libwlb/layout/search_pack.h"
#include "libwlb/pairs.h"

void wlb_search_options_init(struct wlb_search_options *options, int32_t nodes, int64_t seq_length,
                             int32_t global_batch)
{
	*options = (struct wlb_search_options){
		.nodes = nodes,
		.seq_length = seq_length,
		.global_batch = global_batch,
		.batch_fill = 1.0,
		.max_length_ratio = 1.25,
		.near_equal = 0.01,
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
	    check_count("least_micro_batches", o->least_micro_batches, 0, 1 << 21, error) < 0 ||
	    check_count("zero_stage", o->zero_stage, 0, 3, error) < 0 ||
	    check_count("keep", o->keep, 1, 1 << 16, error) < 0 ||
	    check_count("most_simulated", o->most_simulated, 1, 1 << 24, error) < 0)
		return -1;
	if (o->cost.trainer == WLB_COST_WORKER && o->seq_length * o->global_batch > INT32_MAX)
		return wlb_fail(
			error,
			"seq_length %lld x global_batch_size %d: for wlb-worker their product must be below 2^31; "
			"lower one of them",
			(long long)o->seq_length, o->global_batch);
	if (!(o->batch_fill > 0.0 && o->batch_fill <= 1.0))
		return wlb_fail(error, "batch_fill is %g: it must be above 0 and at most 1", o->batch_fill);
	if (!(o->max_length_ratio >= 1.0 && o->max_length_ratio <= 64.0))
		return wlb_fail(error, "max_length_ratio is %g: it must lie between 1 and 64", o->max_length_ratio);
	if (o->max_tokens != 0 && o->max_tokens < o->seq_length)
		return wlb_fail(error, "max_tokens is %lld: it must be 0, or at least seq_length, %lld",
		                (long long)o->max_tokens, (long long)o->seq_length);
	if (!(o->near_equal >= 0.0 && o->near_equal <= 1.0))
		return wlb_fail(error, "near_equal is %g: it must lie between 0 and 1", o->near_equal);
	for (int32_t n = 0; o->gpus_of_node != NULL && n < o->nodes; n++)
		if (o->gpus_of_node[n] < 0 || o->gpus_of_node[n] > machine->gpus_per_node)
			return wlb_fail(error, "node %d has %d GPUs: it must be between 0 and gpus_per_node, %d", n,
			                o->gpus_of_node[n], machine->gpus_per_node);
	return 0;
}

static int by_length(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x < y) - (x > y);
}

/* Reads the lengths of the documents in the samples and sets the work of a step of the global batch. */
static int read_samples(struct wlb_search *search, struct wlb_error *error)
{
	const struct wlb_search_options *o = &search->options;
	size_t count = 0;
	for (size_t s = 0; s < o->samples; s++)
		count += o->sample[s].count;
	search->tokens = calloc(count + 1, sizeof(*search->tokens));
	search->squares = calloc(count + 1, sizeof(*search->squares));
	if (search->tokens == NULL || search->squares == NULL)
		return wlb_fail(error, "out of memory for %zu documents", count);
	double tokens = 0.0, pairs = 0.0;
	for (size_t s = 0; s < o->samples; s++)
		for (size_t i = 0; i < o->sample[s].count; i++) {
			int64_t length = o->sample[s].spans[i].span.tokens;
			if (length < 1)
				continue;
			if (length > o->seq_length)
				return wlb_fail(error,
				                "a document of the samples has %lld tokens: at most seq_length, %lld",
				                (long long)length, (long long)o->seq_length);
			search->tokens[search->documents++] = length;
			search->longest = length > search->longest ? length : search->longest;
			tokens += (double)length;
			search->tokens_of_length[63 - __builtin_clzll((unsigned long long)length)] += (double)length;
			pairs += wlb_mean_pairs(&search->model, (double)length, (double)length);
		}
	qsort(search->tokens, search->documents, sizeof(*search->tokens), by_length);
	for (size_t i = 0; i < search->documents; i++)
		search->squares[i + 1] = search->squares[i] + (double)search->tokens[i] * (double)search->tokens[i];
	if (search->documents == 0)
		return wlb_fail(error, "the samples hold no document: give at least one packed batch");
	search->work.tokens = (double)o->global_batch * (double)o->seq_length * o->batch_fill;
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

/* Fails because there is no plan. Where every GPU must have a rank, the message has the most that a plan can use. */
static int fail_to_enumerate(struct wlb_search *search, struct wlb_error *error)
{
	int32_t most = 0, every_gpu = search->options.every_gpu;
	search->options.every_gpu = 0;
	if (every_gpu && wlb_search_enumerate(search, error) < 0)
		return -1;
	for (size_t i = 0; i < search->count; i++)
		most = search->plans[i].candidate.gpus > most ? search->plans[i].candidate.gpus : most;
	return wlb_search_fail_fixed(search, most, error);
}

static int run(struct wlb_search *search, struct wlb_search_found *found, struct wlb_error *error)
{
	if (read_samples(search, error) < 0 || read_nodes(search, error) < 0 ||
	    wlb_search_check_fixed(search, error) < 0 || wlb_search_enumerate(search, error) < 0)
		return -1;
	if (search->count == 0)
		return fail_to_enumerate(search, error);
	return wlb_search_choose(search, found, error);
}

struct wlb_search_result *wlb_search(const struct wlb_model *model, const struct wlb_machine *machine,
                                     const struct wlb_search_options *options, struct wlb_error *error)
{
	if (wlb_model_check(model, error) < 0 || wlb_machine_check(machine, error) < 0 ||
	    check(options, machine, error) < 0 || wlb_machine_fp8_check(machine, options->cost.fp8, error) < 0)
		return NULL;
	struct wlb_search search = {.model = *model, .machine = *machine, .options = *options};
	struct wlb_search_found *found = calloc(1, sizeof(*found));
	int rc = found == NULL ? wlb_fail(error, "out of memory for the search") : run(&search, found, error);
	wlb_search_packings_free(&search);
	free(search.tokens);
	free(search.squares);
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
	struct wlb_search_found *found = (struct wlb_search_found *)result; /* the result is its first member */
	if (found == NULL)
		return;
	free(found->ranked);
	free(found->misfits);
	free(found->places);
	free(found);
}

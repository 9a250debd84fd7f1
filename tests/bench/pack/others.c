/*
 * Written anew after these, which fill windows and do not weigh documents by their work:
 * - first-fit-shuffle, first-fit-decreasing: NeMo, nemo/utils/sequence_packing_utils.py (first_fit_shuffle,
 *   first_fit_decreasing), over the whole data set; nemo/collections/llm/gpt/data/core.py (GPTSFTPackedDataset) reads
 *   the packed windows in a random order.
 * - best-fit-decreasing: TRL 1.16, trl/data_utils.py (_pack_bfd), over the 1,000 documents that Dataset.map gives to a
 *   call by default; transformers' Trainer reads the packed windows in a random order.
 * - longest-processing-time (Graham 1969) over the global batch, by tokens and by work, into micro-batches that have no
 *   limit of tokens.
 */
#include "tests/bench/pack/others.h"

#include <stdio.h>
#include <stdlib.h>

enum { DOCUMENTS_OF_A_CALL = 1000, EXAMPLE = 5 };

struct document {
	int64_t tokens;
	double work;
	int64_t step; /* in whose global batch it is */
	size_t bin;
};

struct bin {
	int64_t tokens;
	double work;
	int64_t step; /* that trains it */
};

struct run {
	int64_t window;
	size_t micro_batches; /* of a step */
	struct document *documents;
	size_t count, capacity;
	struct bin *bins; /* `opened` of `leaves` */
	size_t opened, leaves;
	int64_t *most_space; /* a tree: of node k the most tokens that a bin below it has space for; leaves are last */
	size_t first_bin;    /* of the documents that are packed at once */
	uint64_t random;
};

/* What is packed at once. */
enum at_once { DATA_SET, A_CALL, GLOBAL_BATCH };
static const char *const at_once_names[] = {"the data set", "1,000 documents", "a global batch"};

struct packer {
	const char *name;
	enum at_once at_once;
	bool shuffled; /* documents; else the longest is first */
	size_t (*choose)(const struct run *run, int64_t tokens);
	size_t bins_of_example[EXAMPLE]; /* see check_packers */
};

static void *must(void *allocated)
{
	if (allocated != NULL)
		return allocated;
	fprintf(stderr, "pack: out of memory for the packers of others\n");
	exit(1);
}

/* Returns the first bin with space; one that is not opened has space for a window. */
static size_t first_fit(const struct run *run, int64_t tokens)
{
	size_t node = 1;
	while (node < run->leaves)
		node = 2 * node + (run->most_space[2 * node] < tokens);
	return node - run->leaves;
}

/* Returns the bin with the least space that suffices. */
static size_t best_fit(const struct run *run, int64_t tokens)
{
	size_t best = run->opened;
	for (size_t b = run->first_bin; b < run->opened; b++)
		if (run->window - run->bins[b].tokens >= tokens &&
		    (best == run->opened || run->bins[b].tokens > run->bins[best].tokens))
			best = b;
	return best;
}

static size_t fewest_tokens(const struct run *run, int64_t tokens)
{
	(void)tokens;
	size_t best = run->first_bin;
	for (size_t b = best; b < run->first_bin + run->micro_batches; b++)
		if (run->bins[b].tokens < run->bins[best].tokens)
			best = b;
	return best;
}

static size_t least_work(const struct run *run, int64_t tokens)
{
	(void)tokens;
	size_t best = run->first_bin;
	for (size_t b = best; b < run->first_bin + run->micro_batches; b++)
		if (run->bins[b].work < run->bins[best].work)
			best = b;
	return best;
}

static const struct packer packers[] = {
	{"first-fit-shuffle (NeMo)", DATA_SET, true, first_fit, {0, 0, 0, 1, 1}},
	{"first-fit-decreasing (NeMo)", DATA_SET, false, first_fit, {0, 0, 0, 1, 1}},
	{"best-fit-decreasing (TRL)", A_CALL, false, best_fit, {1, 0, 0, 1, 1}},
	{"longest-processing-time, by tokens", GLOBAL_BATCH, false, fewest_tokens, {0, 0, 0, 1, 1}},
	{"longest-processing-time, by work", GLOBAL_BATCH, false, least_work, {1, 0, 0, 1, 1}},
};

static size_t random_below(uint64_t *random, size_t bound)
{
	return (size_t)(corpus_random(random) % bound);
}

/* Takes the documents of all steps. */
static void take_documents(struct run *run, const struct workload *workload)
{
	struct corpus corpus = {0};
	wlb_lengths_init(&corpus.lengths, workload->seed, workload->tail);
	for (int64_t step = 0; step < workload->steps; step++) {
		size_t count = corpus_next(&corpus, run->window, run->window * (int64_t)run->micro_batches);
		if (run->count + count > run->capacity) {
			run->capacity = 2 * (run->count + count);
			run->documents = must(reallocarray(run->documents, run->capacity, sizeof(*run->documents)));
		}
		for (size_t i = 0; i < count; i++)
			run->documents[run->count++] = (struct document){
				.tokens = corpus.batch[i].tokens,
				.work = wlb_cost_document(&corpus_model, corpus.batch[i].tokens),
				.step = step,
			};
	}
	corpus_free(&corpus);
}

/* First fit and best fit leave at most one bin of a call half empty: there are at most two bins for each window, and
 * one for each call. */
static void allocate_bins(struct run *run, int64_t steps)
{
	size_t most = 2 * (size_t)steps * run->micro_batches + run->count / DOCUMENTS_OF_A_CALL + 2;
	for (run->leaves = 1; run->leaves < most; run->leaves *= 2)
		;
	run->bins = must(calloc(run->leaves, sizeof(*run->bins)));
	run->most_space = must(calloc(2 * run->leaves, sizeof(*run->most_space)));
}

static void free_bins(struct run *run)
{
	free(run->bins);
	free(run->most_space);
}

static void empty_bins(struct run *run)
{
	run->opened = run->first_bin = 0;
	run->random = 1;
	for (size_t b = 0; b < run->leaves; b++)
		run->bins[b] = (struct bin){0};
	for (size_t k = 1; k < 2 * run->leaves; k++)
		run->most_space[k] = run->window;
}

static void put(struct run *run, struct document *document, size_t b)
{
	struct bin *bin = &run->bins[b];
	document->bin = b;
	bin->tokens += document->tokens;
	bin->work += document->work;
	run->opened = b < run->opened ? run->opened : b + 1;
	size_t node = run->leaves + b;
	run->most_space[node] = run->window - bin->tokens;
	for (node /= 2; node > 0; node /= 2) {
		int64_t left = run->most_space[2 * node], right = run->most_space[2 * node + 1];
		run->most_space[node] = left > right ? left : right;
	}
}

static int longest_first(const void *a, const void *b)
{
	const struct document *x = *(struct document *const *)a, *y = *(struct document *const *)b;
	if (x->tokens != y->tokens)
		return x->tokens > y->tokens ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* Returns the end of the documents from `from` on that are packed at once. */
static size_t end_of(const struct run *run, enum at_once at_once, size_t from)
{
	size_t end = at_once == DATA_SET ? run->count : from + DOCUMENTS_OF_A_CALL;
	if (at_once == GLOBAL_BATCH)
		for (end = from; end < run->count && run->documents[end].step == run->documents[from].step; end++)
			;
	return end < run->count ? end : run->count;
}

static void pack(struct run *run, const struct packer *packer)
{
	struct document **order = must(calloc(run->count, sizeof(struct document *)));
	empty_bins(run);
	for (size_t from = 0, end; from < run->count; from = end) {
		end = end_of(run, packer->at_once, from);
		size_t count = end - from;
		for (size_t i = 0; i < count; i++)
			order[i] = &run->documents[from + i];
		if (!packer->shuffled)
			qsort(order, count, sizeof(struct document *), longest_first);
		for (size_t i = count; packer->shuffled && i > 1; i--) {
			size_t other = random_below(&run->random, i);
			struct document *swapped = order[i - 1];
			order[i - 1] = order[other];
			order[other] = swapped;
		}
		for (size_t i = 0; i < count; i++)
			put(run, order[i], packer->choose(run, order[i]->tokens));
		run->first_bin = packer->at_once == GLOBAL_BATCH ? run->first_bin + run->micro_batches : run->opened;
	}
	run->opened = run->first_bin > run->opened ? run->first_bin : run->opened;
	free(order);
}

/* Gives each step its bins: those of its global batch, else the next in a random order. Returns the steps. */
static int64_t order_bins(struct run *run, enum at_once at_once)
{
	size_t *places = must(calloc(run->opened, sizeof(*places)));
	for (size_t b = 0; b < run->opened; b++) {
		size_t other = at_once == GLOBAL_BATCH ? b : random_below(&run->random, b + 1);
		places[b] = places[other];
		places[other] = b;
	}
	for (size_t place = 0; place < run->opened; place++)
		run->bins[places[place]].step = (int64_t)(place / run->micro_batches);
	free(places);
	return (int64_t)(run->opened / run->micro_batches);
}

struct measured {
	double tokens, moved_token_steps;
	int64_t longest_tokens;
	double *most, *sum; /* work of each step: of its heaviest bin, and of all; then its imbalance in `most` */
};

/* Only steps of `micro_batches` bins count: the last may have fewer. */
static struct measured measure(const struct run *run, int64_t steps)
{
	struct measured m = {.most = must(calloc((size_t)steps + 1, sizeof(double))),
	                     .sum = must(calloc((size_t)steps + 1, sizeof(double)))};
	for (size_t b = 0; b < run->opened; b++) {
		const struct bin *bin = &run->bins[b];
		m.most[bin->step] = bin->work > m.most[bin->step] ? bin->work : m.most[bin->step];
		m.sum[bin->step] += bin->work;
		m.longest_tokens = bin->tokens > m.longest_tokens ? bin->tokens : m.longest_tokens;
	}
	for (size_t i = 0; i < run->count; i++) {
		const struct document *document = &run->documents[i];
		int64_t moved = run->bins[document->bin].step - document->step;
		m.tokens += (double)document->tokens;
		m.moved_token_steps += (double)document->tokens * (double)(moved < 0 ? -moved : moved);
	}
	for (int64_t step = 0; step < steps; step++)
		m.most[step] *= (double)run->micro_batches / m.sum[step];
	return m;
}

static void print_row(struct run *run, const struct packer *packer)
{
	pack(run, packer);
	int64_t steps = order_bins(run, packer->at_once);
	struct measured m = measure(run, steps);
	struct imbalances found = corpus_imbalances(m.most, (size_t)steps);
	printf("| %s | %s | %zu | %.4f | %.3f | %.3f | %.2f | %.1f%% |\n", packer->name, at_once_names[packer->at_once],
	       run->micro_batches, found.mean, found.p99, m.moved_token_steps / m.tokens,
	       (double)m.longest_tokens / (double)run->window,
	       100.0 * (1.0 - m.tokens / ((double)run->opened * (double)run->window)));
	fflush(stdout);
	free(m.most);
	free(m.sum);
}

/* Ends the program where a packer does not pack a small example, whose work is tokens^2, as done by hand. */
static void check_packers(void)
{
	struct document documents[EXAMPLE] = {
		{.tokens = 5, .work = 25},    {.tokens = 60, .work = 3600}, {.tokens = 34, .work = 1156},
		{.tokens = 50, .work = 2500}, {.tokens = 45, .work = 2025},
	};
	struct run run = {.window = 100, .micro_batches = 2, .documents = documents, .count = EXAMPLE};
	allocate_bins(&run, 1);
	for (size_t p = 0; p < sizeof(packers) / sizeof(packers[0]); p++) {
		pack(&run, &packers[p]);
		for (size_t i = 0; i < EXAMPLE; i++)
			if (documents[i].bin != packers[p].bins_of_example[i]) {
				fprintf(stderr, "pack: %s puts document %zu of the example into bin %zu, not %zu\n",
				        packers[p].name, i, documents[i].bin, packers[p].bins_of_example[i]);
				exit(1);
			}
	}
	free_bins(&run);
}

void others_print(const struct workload *workload)
{
	check_packers();
	printf("\n| packer | packs at once | N | imbalance_mean | p99 | moved, mean steps | longest micro-batch, "
	       "windows "
	       "| empty |\n|---|---|---|---|---|---|---|---|\n");
	for (size_t micro_batches = 4; micro_batches <= 32; micro_batches *= 2) {
		struct run run = {.window = workload->seq_length, .micro_batches = micro_batches};
		take_documents(&run, workload);
		allocate_bins(&run, workload->steps);
		for (size_t p = 0; p < sizeof(packers) / sizeof(packers[0]); p++)
			print_row(&run, &packers[p]);
		free(run.documents);
		free_bins(&run);
	}
}

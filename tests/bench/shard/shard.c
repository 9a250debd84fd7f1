/*
 * Context-parallel sharding of micro-batches of 98,304 to 163,840 tokens, as variable-length packing fills a window of
 * 131,072: how unequal the ranks' work and tokens are, the slowest rank's predicted time over the ideal (equal
 * ranks, full tiles; 400 TFLOPS in attention, 600 in matrix products), how often adaptive chose per-document, and
 * what sharding costs. Below the three shardings stands dynamic context parallelism over the same ranks, at most a
 * quarter more tokens on one.
 * Usage: wlb-shard-bench [--micro-batches N] [--tail T]
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/bench/pack/corpus.h"

enum { WINDOW = 131072, MOST_DOCUMENTS = 1024, MOST_RANKS = 16, DYNAMIC = WLB_SHARDING_ADAPTIVE + 1 };

struct settings {
	int64_t micro_batches;
	double tail;
};

struct result {
	double spread_mean; /* work of the busiest rank less that of the idlest, over the mean */
	double spread_most;
	double imbalance_mean; /* work of the busiest rank over the mean */
	int64_t tokens_most;   /* of the fullest rank less those of the emptiest */
	double attention;      /* predicted seconds of the slowest rank over the ideal */
	double layer;
	int64_t documents; /* micro-batches sharded per document */
	clock_t busy;
};

struct micro_batch {
	int64_t tokens[MOST_DOCUMENTS];
	size_t count;
	int64_t sum;
};

/* Documents until `sum` tokens are there, the last one cut to fit. */
static void fill(struct micro_batch *batch, struct wlb_lengths *lengths, int64_t sum)
{
	batch->sum = sum;
	batch->count = 0;
	for (int64_t left = sum; left > 0; left -= batch->tokens[batch->count++]) {
		int64_t length = wlb_lengths_next(lengths);
		batch->tokens[batch->count] = length < left ? length : left;
	}
}

static int shard_dynamically(const struct micro_batch *batch, int32_t ranks, struct wlb_shards *shards,
                             struct wlb_error *error)
{
	static struct wlb_place places[MOST_DOCUMENTS];
	struct wlb_load loads[MOST_RANKS];
	int64_t most = batch->sum / ranks * 5 / 4;
	if (wlb_dynamic_cp(&corpus_model, batch->tokens, batch->count, ranks, 1, most, places, loads, error) < 0)
		return -1;
	return wlb_shard_places(batch->tokens, places, batch->count, ranks, 0, shards, error);
}

/* Seconds of one layer forward, of the slowest rank or of every rank were all equal and no tile filled in part. */
struct seconds {
	double attention_s;
	double layer_s; /* with the matrix products */
};

static struct seconds ideal(const struct wlb_shards *shards, const struct wlb_kernel_time *kernels)
{
	double pairs = 0.0;
	for (int32_t r = 0; r < shards->ranks; r++)
		pairs += (double)wlb_shards_pairs(shards, r);
	double attention_s = pairs * kernels->attention_pair_s / shards->ranks;
	return (struct seconds){attention_s,
	                        attention_s + (double)shards->tokens * kernels->gemm_token_s / shards->ranks};
}

static struct seconds slowest(const struct wlb_shards *shards, const struct wlb_kernel_time *kernels)
{
	struct seconds most = {0};
	for (int32_t r = 0; r < shards->ranks; r++) {
		double attention_s = wlb_shards_seconds(shards, r, kernels);
		double layer_s =
			attention_s + wlb_gemm_seconds(kernels, shards->first_row[r + 1] - shards->first_row[r]);
		most.attention_s = attention_s > most.attention_s ? attention_s : most.attention_s;
		most.layer_s = layer_s > most.layer_s ? layer_s : most.layer_s;
	}
	return most;
}

static void judge(const struct wlb_shards *shards, const struct wlb_kernel_time *kernels, int64_t micro_batches,
                  struct result *result)
{
	struct seconds best = ideal(shards, kernels), worst = slowest(shards, kernels);
	double most = 0.0, least = 0.0, sum = 0.0;
	int64_t fullest = 0, emptiest = INT64_MAX;
	for (int32_t r = 0; r < shards->ranks; r++) {
		double work = wlb_shards_work(shards, r, &corpus_model);
		int64_t tokens = shards->first_row[r + 1] - shards->first_row[r];
		most = r == 0 || work > most ? work : most;
		least = r == 0 || work < least ? work : least;
		sum += work;
		fullest = tokens > fullest ? tokens : fullest;
		emptiest = tokens < emptiest ? tokens : emptiest;
	}
	double mean = sum / shards->ranks, n = (double)micro_batches;
	result->spread_mean += (most - least) / mean / n;
	result->spread_most = (most - least) / mean > result->spread_most ? (most - least) / mean : result->spread_most;
	result->imbalance_mean += most / mean / n;
	result->tokens_most = fullest - emptiest > result->tokens_most ? fullest - emptiest : result->tokens_most;
	result->attention += worst.attention_s / best.attention_s / n;
	result->layer += worst.layer_s / best.layer_s / n;
	result->documents += shards->sharding == WLB_SHARDING_DOCUMENT;
}

static struct result measure(const struct settings *settings, int32_t ranks, int sharding)
{
	static struct micro_batch batch;
	struct wlb_kernel_time kernels;
	struct wlb_shards shards = {0};
	struct wlb_lengths lengths;
	struct wlb_error error;
	struct result result = {0};
	wlb_kernel_time_init(&kernels, &corpus_model, 1, 400e12, 600e12);
	wlb_lengths_init(&lengths, 1, settings->tail);
	for (int64_t n = 0; n < settings->micro_batches; n++) {
		fill(&batch, &lengths, WINDOW * 3 / 4 + n * 7919 % (WINDOW / 2 + 1));
		clock_t start = clock();
		int rc = sharding == DYNAMIC ? shard_dynamically(&batch, ranks, &shards, &error)
		                             : wlb_shard((enum wlb_sharding)sharding, &kernels, batch.tokens,
		                                         batch.count, ranks, &shards, &error);
		result.busy += clock() - start;
		if (rc < 0) {
			fprintf(stderr, "wlb-shard-bench: %s\n", error.message);
			exit(1);
		}
		judge(&shards, &kernels, settings->micro_batches, &result);
	}
	wlb_shards_free(&shards);
	return result;
}

static void print_row(const struct settings *settings, int32_t ranks, int sharding)
{
	struct result r = measure(settings, ranks, sharding);
	double n = (double)settings->micro_batches;
	const char *name = sharding == DYNAMIC ? "dynamic" : wlb_sharding_name((enum wlb_sharding)sharding);
	printf("| %d | %s | %.4f | %.4f%% | %.4f%% | %lld | %.3f | %.3f | %.0f%% | %.0f |\n", ranks, name,
	       r.imbalance_mean, 100.0 * r.spread_mean, 100.0 * r.spread_most, (long long)r.tokens_most, r.attention,
	       r.layer, 100.0 * (double)r.documents / n, (double)r.busy * 1e6 / CLOCKS_PER_SEC / n);
}

static void print_table(const struct settings *settings)
{
	printf("| cp | sharding | imbalance_mean | work difference, mean | work difference, max | token difference, "
	       "max "
	       "| attention over ideal | layer over ideal | per document | us a micro-batch |\n"
	       "|---|---|---|---|---|---|---|---|---|---|\n");
	for (int32_t ranks = 2; ranks <= MOST_RANKS; ranks *= 2)
		for (int sharding = WLB_SHARDING_SEQUENCE; sharding <= DYNAMIC; sharding++)
			print_row(settings, ranks, sharding);
}

static double number(const char *option, const char *text, double least)
{
	char *end;
	double value = strtod(text, &end);
	if (end != text && *end == '\0' && value >= least && value <= 1e9)
		return value;
	fprintf(stderr, "wlb-shard-bench: --%s is \"%s\": it must be a number between %g and 1e9\n", option, text,
	        least);
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"micro-batches", required_argument, NULL, 'n'},
		{"tail", required_argument, NULL, 't'},
		{NULL, 0, NULL, 0},
	};
	struct settings settings = {.micro_batches = 1000, .tail = 1.0};
	for (int letter; (letter = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (letter == 'n')
			settings.micro_batches = (int64_t)number("micro-batches", optarg, 1.0);
		else if (letter == 't')
			settings.tail = number("tail", optarg, 0.0);
		else
			return 2;
	}
	print_table(&settings);
	return 0;
}

/*
 * Dynamic context parallelism: how equal the ranks get with no document waiting, what share of the tokens needs one
 * rank only, and what that costs. One window of 131,072 tokens for every 8 ranks.
 * Usage: wlb-dynamic_cp-bench [--steps N]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/bench/pack/corpus.h"

enum { WINDOW = 131072, RANKS_PER_WINDOW = 8, MOST_RANKS = 64, MOST_DOCUMENTS = 8192 };

static double imbalance_of(const struct wlb_load *loads, int32_t ranks)
{
	double most = 0.0, sum = 0.0;
	for (int32_t r = 0; r < ranks; r++) {
		most = loads[r].work > most ? loads[r].work : most;
		sum += loads[r].work;
	}
	return most * ranks / sum;
}

static void print_row(int32_t ranks, int steps)
{
	static int64_t tokens[MOST_DOCUMENTS];
	static struct wlb_place places[MOST_DOCUMENTS];
	static struct wlb_load loads[MOST_RANKS];
	struct corpus corpus = {0};
	struct wlb_error error;
	double mean = 0.0, worst = 0.0, alone = 0.0, all = 0.0;
	clock_t busy = 0;
	wlb_lengths_init(&corpus.lengths, 1, 1.0);
	for (int k = 0; k < steps; k++) {
		size_t count = corpus_next(&corpus, WINDOW, (int64_t)ranks / RANKS_PER_WINDOW * WINDOW);
		for (size_t i = 0; i < count; i++)
			tokens[i] = corpus.batch[i].tokens;
		clock_t start = clock();
		if (wlb_dynamic_cp(&corpus_model, tokens, count, ranks, 1, WINDOW / 4, places, loads, &error) < 0) {
			fprintf(stderr, "wlb-dynamic_cp-bench: %s\n", error.message);
			exit(1);
		}
		busy += clock() - start;
		double imbalance = imbalance_of(loads, ranks);
		mean += imbalance / steps;
		worst = imbalance > worst ? imbalance : worst;
		for (size_t i = 0; i < count; i++) {
			all += (double)tokens[i];
			alone += places[i].ranks == 1 ? (double)tokens[i] : 0.0;
		}
	}
	corpus_free(&corpus);
	printf("| %d | %.4f | %.4f | %.2f | %.0f |\n", ranks, mean, worst, alone / all,
	       (double)busy * 1e6 / CLOCKS_PER_SEC / steps);
}

int main(int argc, char **argv)
{
	int steps = 1000;
	if (argc == 3 && strcmp(argv[1], "--steps") == 0)
		steps = atoi(argv[2]);
	if (steps < 1 || (argc != 1 && argc != 3)) {
		fprintf(stderr, "usage: wlb-dynamic_cp-bench [--steps N], N at least 1\n");
		return 2;
	}
	printf("| cp x dp | imbalance_mean | max | tokens on one rank | us a step |\n|---|---|---|---|---|\n");
	for (int32_t ranks = RANKS_PER_WINDOW; ranks <= MOST_RANKS; ranks *= 2)
		print_row(ranks, steps);
	return 0;
}

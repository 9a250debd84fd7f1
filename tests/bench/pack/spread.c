/*
 * Dynamic context parallelism: how equal the ranks get with no document waiting, what groups the tokens run on,
 * and what the spreading costs. One window of 131,072 tokens for every 8 ranks. Usage: pack_spread
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "libwlb/wlb.h"

enum { STEPS = 1000, WINDOW = 131072, RANKS_PER_WINDOW = 8, MOST_RANKS = 64, MOST_DOCUMENTS = 8192 };

/* 7B class, as in pack.c. */
static const struct wlb_model model = {
	.hidden_size = 4096,
	.intermediate_size = 11008,
	.num_hidden_layers = 32,
	.num_attention_heads = 32,
	.num_key_value_heads = 32,
	.head_dim = 128,
	.vocab_size = 32000,
	.max_position_embeddings = 131072,
	.rope_theta = 10000.0,
	.rms_norm_eps = 1e-5,
};

static size_t next_batch(struct wlb_lengths *lengths, int64_t *left, int64_t max_tokens, int64_t *tokens)
{
	size_t count = 0;
	for (int64_t sum = 0;;) {
		if (*left == 0)
			*left = wlb_lengths_next(lengths);
		if (sum + *left > max_tokens || count == MOST_DOCUMENTS)
			return count;
		sum += *left;
		tokens[count++] = *left;
		*left = 0;
	}
}

static double imbalance_of(const struct wlb_load *loads, int32_t ranks)
{
	double most = 0.0, sum = 0.0;
	for (int32_t r = 0; r < ranks; r++) {
		most = loads[r].work > most ? loads[r].work : most;
		sum += loads[r].work;
	}
	return most * ranks / sum;
}

static void print_row(int32_t ranks)
{
	static int64_t tokens[MOST_DOCUMENTS];
	static struct wlb_place places[MOST_DOCUMENTS];
	static struct wlb_load loads[MOST_RANKS];
	struct wlb_lengths lengths;
	struct wlb_error error;
	int64_t left = 0;
	double mean = 0.0, worst = 0.0, alone = 0.0, all = 0.0;
	clock_t busy = 0;
	wlb_lengths_init(&lengths, 1, 1.0);
	for (int k = 0; k < STEPS; k++) {
		size_t count = next_batch(&lengths, &left, (int64_t)ranks / RANKS_PER_WINDOW * WINDOW, tokens);
		clock_t start = clock();
		if (wlb_spread(&model, tokens, count, ranks, 1, WINDOW / 4, places, loads, &error) < 0) {
			fprintf(stderr, "pack_spread: %s\n", error.message);
			exit(1);
		}
		busy += clock() - start;
		double imbalance = imbalance_of(loads, ranks);
		mean += imbalance / STEPS;
		worst = imbalance > worst ? imbalance : worst;
		for (size_t i = 0; i < count; i++) {
			all += (double)tokens[i];
			alone += places[i].ranks == 1 ? (double)tokens[i] : 0.0;
		}
	}
	printf("| %d | %.4f | %.4f | %.2f | %.0f |\n", ranks, mean, worst, alone / all,
	       (double)busy * 1e6 / CLOCKS_PER_SEC / STEPS);
}

int main(void)
{
	printf("| cp x dp | imbalance_mean | max | tokens on one rank | us a step |\n|---|---|---|---|---|\n");
	for (int32_t ranks = RANKS_PER_WINDOW; ranks <= MOST_RANKS; ranks *= 2)
		print_row(ranks);
	return 0;
}

/*
 * How equal the micro-batches get, what documents wait for it, and what packing costs: the table of the
 * strategies over one seeded stream, then that of the packers of others. Usage: wlb-pack-bench [--steps N] [--seed N]
 * [--tail X] [--seq-length N]
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/bench/pack/corpus.h"
#include "tests/bench/pack/others.h"

/* The packers of others need no warm-up and differ less from step to step. */
enum { WARM_UP_STEPS = 50, STEPS_OF_OTHERS = 500 };

static void fail(const char *message)
{
	fprintf(stderr, "pack: %s\n", message);
	exit(1);
}

struct result {
	struct imbalances imbalance;
	double delay_mean_steps;
	int32_t delay_max_steps;
	double us_per_step;
	double least_step; /* tokens of a step, in units of N windows */
	double most_step;
	int64_t cuts;
};

/* Of the processor, so that a busy machine makes no difference. */
static double now_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Tokens x steps that the spans waited. */
static double waited(const struct wlb_step *step, int32_t *delay_max_steps)
{
	double sum = 0.0;
	for (size_t i = 0; i < step->count; i++) {
		int32_t steps = step->spans[i].waited_steps;
		sum += (double)step->spans[i].span.tokens * steps;
		if (steps > *delay_max_steps)
			*delay_max_steps = steps;
	}
	return sum;
}

static struct result measure(const struct workload *workload, const struct wlb_packer_options *options)
{
	struct wlb_error error;
	struct wlb_packer *packer = wlb_packer_new(&corpus_model, options, &error);
	if (packer == NULL)
		fail(error.message);
	struct corpus corpus = {0};
	wlb_lengths_init(&corpus.lengths, workload->seed, workload->tail);
	double *imbalances = malloc((size_t)workload->steps * sizeof(*imbalances));
	if (imbalances == NULL)
		fail("out of memory");
	struct result result = {.least_step = 1e9};
	double busy_s = 0.0, tokens = 0.0, window = (double)options->seq_length * options->micro_batches;
	for (int64_t k = -WARM_UP_STEPS; k < workload->steps; k++) {
		size_t count = corpus_next(&corpus, options->seq_length, options->seq_length * options->micro_batches);
		double start_s = now_s();
		const struct wlb_step *step = wlb_packer_next(packer, corpus.batch, count, &error);
		double took_s = now_s() - start_s;
		if (step == NULL)
			fail(error.message);
		if (k < 0)
			continue;
		busy_s += took_s;
		imbalances[k] = wlb_step_imbalance(step);
		result.delay_mean_steps += waited(step, &result.delay_max_steps);
		result.cuts += step->cuts;
		double share = (double)step->tokens / window;
		result.least_step = share < result.least_step ? share : result.least_step;
		result.most_step = share > result.most_step ? share : result.most_step;
		tokens += (double)step->tokens;
	}
	result.imbalance = corpus_imbalances(imbalances, (size_t)workload->steps);
	result.delay_mean_steps /= tokens;
	result.us_per_step = busy_s * 1e6 / (double)workload->steps;
	free(imbalances);
	corpus_free(&corpus);
	wlb_packer_free(packer);
	return result;
}

static void print_row(const struct workload *workload, enum wlb_strategy strategy, double ratio, int32_t micro_batches)
{
	struct wlb_packer_options options;
	wlb_packer_options_init(&options, workload->seq_length, micro_batches);
	options.strategy = strategy;
	options.max_length_ratio = ratio;
	struct result r = measure(workload, &options);
	printf("| %s | %.2f | %d | %.4f | %.3f | %.3f | %d | %.2f to %.2f | %lld | %.0f |\n",
	       wlb_strategy_name(strategy), ratio, micro_batches, r.imbalance.mean, r.imbalance.p99, r.delay_mean_steps,
	       r.delay_max_steps, r.least_step, r.most_step, (long long)r.cuts, r.us_per_step);
	fflush(stdout);
}

static void print_table(const struct workload *workload)
{
	static const int32_t sizes[] = {4, 8, 16, 32};
	static const double ratios[] = {1.5, 1.25};
	printf("| strategy | ratio | N | imbalance_mean | p99 | delay_mean_steps | max | step tokens | cuts | us a "
	       "step |\n"
	       "|---|---|---|---|---|---|---|---|---|---|\n");
	for (size_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++) {
		print_row(workload, WLB_STRATEGY_PLAIN, 1.0, sizes[n]);
		print_row(workload, WLB_STRATEGY_FIXED, 1.0, sizes[n]);
	}
	for (size_t r = 0; r < sizeof(ratios) / sizeof(ratios[0]); r++)
		for (size_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++) {
			print_row(workload, WLB_STRATEGY_GREEDY, ratios[r], sizes[n]);
			print_row(workload, WLB_STRATEGY_BALANCED, ratios[r], sizes[n]);
		}
}

static double number(const char *option, const char *text, double least)
{
	char *end;
	double value = strtod(text, &end);
	if (end != text && *end == '\0' && value >= least && value <= 1e9)
		return value;
	fprintf(stderr, "pack: --%s is \"%s\": it must be a number between %g and 1e9\n", option, text, least);
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"steps", required_argument, NULL, 'n'},
		{"seed", required_argument, NULL, 's'},
		{"tail", required_argument, NULL, 't'},
		{"seq-length", required_argument, NULL, 'l'},
		{NULL, 0, NULL, 0},
	};
	struct workload workload = {.steps = 2000, .seed = 1, .tail = 1.0, .seq_length = 131072};
	for (int letter; (letter = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (letter == 'n')
			workload.steps = (int64_t)number("steps", optarg, 1.0);
		else if (letter == 's')
			workload.seed = (uint64_t)number("seed", optarg, 0.0);
		else if (letter == 't')
			workload.tail = number("tail", optarg, 0.0);
		else if (letter == 'l')
			workload.seq_length = (int64_t)number("seq-length", optarg, 1.0);
		else
			return 2;
	}
	print_table(&workload);
	workload.steps = workload.steps < STEPS_OF_OTHERS ? workload.steps : STEPS_OF_OTHERS;
	others_print(&workload);
	return 0;
}

/*
 * How well libwlb_verdict names planted faults in synthetic runs, and that it names nothing in healthy ones.
 *
 * Usage: wlb-verdicts-bench [--ranks N] [--positions N] [--steps N] [--kinds KINDS] [--part I/N] [--check]
 *   --ranks      that number alone; without it 8, 16 and 64
 *   --positions  of a fault in all layouts of a number of ranks, drawn at random, where a layout has more than its
 *                share of them and more than 64 (1000)
 *   --kinds      slow, several, still, clocks or healthy; without it all
 *   --steps      of each kind of healthy run (10000)
 *   --part       of the kinds, the I-th of N shares, from 0
 *   --check      ends with 1 where a goal is missed
 */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/bench/verdicts/chance.h"
#include "tests/bench/verdicts/clock_trials.h"
#include "tests/bench/verdicts/trials.h"

static const double goal = 0.99;
enum { CLOCK_TRIALS = 20 };

struct settings {
	int32_t ranks;
	int32_t positions;
	int64_t steps;
	const char *kinds;
	int part;
	int parts;
	int check;
	int row;
	int missed;
};

static double busy_s(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

static int is_mine(struct settings *settings)
{
	return settings->row++ % settings->parts == settings->part;
}

static void run_layout(const struct settings *settings, const struct trial_kind *kind,
                       const struct wlb_verdict_layout *layout, int32_t layouts, struct score *score)
{
	struct cluster cluster = cluster_new(layout);
	int32_t positions = kind->positions(&cluster);
	struct chance chance = chance_of(7, (uint64_t)positions);
	int32_t most = (settings->positions + layouts - 1) / layouts;
	int all = positions <= 64 || positions <= most;
	for (int32_t i = 0; i < (all ? positions : most); i++)
		kind->run(&cluster, kind, all ? i : chance_below(&chance, positions), (uint64_t)i + 1, score);
	cluster_free(&cluster);
}

static void run_kind(struct settings *settings, const struct trial_kind *kind, int32_t ranks)
{
	int32_t count;
	const struct wlb_verdict_layout *layouts = cluster_layouts(ranks, &count);
	struct score score = {0};
	double began_s = busy_s();
	for (int32_t l = 0; l < count; l++)
		run_layout(settings, kind, &layouts[l], count, &score);
	if (score.planted > 0) {
		double recall = (double)score.named / (double)score.planted;
		double precision = score.named + score.others > 0
		                           ? (double)score.named / (double)(score.named + score.others)
		                           : 0.0;
		settings->missed += !kind->beyond && (recall < goal || precision < goal);
		printf("| %s | %d | %d | %lld | %lld | %lld | %.4f | %.4f | %.0f / %.0f %s |", kind->name, ranks, count,
		       (long long)score.planted, (long long)score.named, (long long)score.others, precision, recall,
		       score_after(&score, 0.5), score_after(&score, 1.0), kind->unit);
		if (score.costs > 0)
			printf(" %.1f %% of %lld, mean error %.1f %% |",
			       100.0 * (double)score.costs_good / (double)score.costs, (long long)score.costs,
			       score.cost_errors > 0 ? 100.0 * score.cost_error / (double)score.cost_errors : 0.0);
		else
			printf(" - |");
		printf(" %.1f |\n", busy_s() - began_s);
		fflush(stdout);
	}
	free(score.after);
}

static void run_healthy(struct settings *settings, const struct healthy_kind *kind, int32_t ranks)
{
	int32_t count;
	const struct wlb_verdict_layout *layouts = cluster_layouts(ranks, &count);
	for (int32_t l = 0; l < count; l++) {
		struct cluster cluster = cluster_new(&layouts[l]);
		double began_s = busy_s();
		int64_t found = kind->run(&cluster, kind, settings->steps, (uint64_t)l + 1);
		const struct wlb_verdict_layout *x = &layouts[l];
		printf("| %s | %d | tp=%d,cp=%d,pp=%d,dp=%d | %lld | %lld | %.1f |\n", kind->name, ranks, x->tp, x->cp,
		       x->pp, x->dp, (long long)settings->steps, (long long)found, busy_s() - began_s);
		fflush(stdout);
		settings->missed += found > 0;
		cluster_free(&cluster);
	}
}

static void run_clocks(struct settings *settings, int32_t ranks)
{
	int32_t count;
	const struct wlb_verdict_layout *layouts = cluster_layouts(ranks, &count);
	struct clock_score score = {0};
	double began_s = busy_s();
	for (int32_t l = 0; l < count; l++) {
		struct cluster cluster = cluster_new(&layouts[l]);
		for (int i = 0; i < CLOCK_TRIALS; i++)
			clock_trial(&cluster, (uint64_t)i + 1, &score);
		cluster_free(&cluster);
	}
	printf("| clocks | %d | %d | %lld | %.1f ms | %.1f ms | %lld | %.1f |\n", ranks, count, (long long)score.trials,
	       1000.0 * score.furthest_s, 1000.0 * score.furthest_after_s, (long long)score.late_found,
	       busy_s() - began_s);
	settings->missed += score.late_found < score.trials;
}

static void run_ranks(struct settings *settings, int32_t ranks)
{
	const struct {
		const char *name;
		const struct trial_kind *kinds;
		int32_t count;
	} faults[] = {{"still", still_kinds, still_kind_count},
	              {"slow", slow_kinds, slow_kind_count},
	              {"several", several_kinds, several_kind_count}};
	int all = settings->kinds == NULL;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		for (int32_t k = 0; k < faults[i].count && (all || strcmp(settings->kinds, faults[i].name) == 0); k++)
			if (is_mine(settings))
				run_kind(settings, &faults[i].kinds[k], ranks);
	if ((all || strcmp(settings->kinds, "clocks") == 0) && is_mine(settings))
		run_clocks(settings, ranks);
	for (int32_t k = 0; k < healthy_kind_count && (all || strcmp(settings->kinds, "healthy") == 0); k++)
		if (is_mine(settings))
			run_healthy(settings, &healthy_kinds[k], ranks);
}

static int parse(int argc, char **argv, struct settings *settings)
{
	static const struct option options[] = {{"ranks", required_argument, NULL, 'r'},
	                                        {"positions", required_argument, NULL, 'p'},
	                                        {"steps", required_argument, NULL, 's'},
	                                        {"kinds", required_argument, NULL, 'k'},
	                                        {"part", required_argument, NULL, 'i'},
	                                        {"check", no_argument, NULL, 'c'},
	                                        {NULL, 0, NULL, 0}};
	int option, count = 0;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (option) {
		case 'r':
			settings->ranks = atoi(optarg);
			cluster_layouts(settings->ranks, &count);
			if (count == 0)
				return -1;
			break;
		case 'p':
			settings->positions = atoi(optarg);
			break;
		case 's':
			settings->steps = atoll(optarg);
			break;
		case 'k':
			settings->kinds = optarg;
			break;
		case 'i':
			if (sscanf(optarg, "%d/%d", &settings->part, &settings->parts) != 2 || settings->parts < 1)
				return -1;
			break;
		case 'c':
			settings->check = 1;
			break;
		default:
			return -1;
		}
	return optind == argc && settings->positions > 0 && settings->steps > 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
	static const int32_t small[] = {8, 16, 64};
	struct settings settings = {.positions = 1000, .steps = 10000, .parts = 1};
	if (parse(argc, argv, &settings) < 0) {
		fprintf(stderr, "usage: wlb-verdicts-bench [--ranks N] [--positions N] [--steps N] "
		                "[--kinds slow|several|still|clocks|healthy] [--part I/N] [--check]\n");
		return 2;
	}
	if (settings.ranks > 0)
		run_ranks(&settings, settings.ranks);
	for (size_t i = 0; settings.ranks == 0 && i < sizeof(small) / sizeof(small[0]); i++)
		run_ranks(&settings, small[i]);
	return settings.check && settings.missed > 0;
}

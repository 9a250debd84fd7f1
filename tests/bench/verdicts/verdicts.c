/*
 * How well libwlb_verdict names planted faults in synthetic runs, and that it names nothing in healthy ones.
 *
 * Usage: wlb-verdicts-bench [--ranks N] [--positions N] [--steps N] [--kinds KINDS] [--part I/N] [--check]
 *   --ranks      that number alone; without it 8, 16 and 64
 *   --positions  of a fault in all layouts of a number of ranks, drawn at random, where a layout has more than its
 *                share of them and more than 64 (1000)
 *   --kinds      slow, still, clocks or healthy; without it all
 *   --steps      of each kind of healthy run (10000)
 *   --part       the I-th of N shares, from 0: of the seeds of slow and still, of the kinds of healthy
 *   --check      ends with 1 where a goal is missed
 *
 * Prints a line of JSON for each kind and number of ranks, which scripts/lib/bench_verdicts.py adds up over shares, a
 * line "# ..." for what was missed, and at the end the seconds of processor time.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

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
	int missed;
};

/* Of this process and those that it has waited for. */
static double busy_s(void)
{
	static const int whose[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
	double seconds = 0.0;
	for (size_t i = 0; i < sizeof(whose) / sizeof(whose[0]); i++) {
		struct rusage used;
		getrusage(whose[i], &used);
		seconds += (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
		           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
	}
	return seconds;
}

/* The positions of a kind of fault in a layout: all, or so many of them that are drawn. */
struct positions {
	int32_t of_layout;
	int32_t tried;
	struct chance chance;
};

static struct positions choose_positions(const struct settings *settings, const struct trial_kind *kind,
                                         const struct cluster *cluster, int32_t layouts)
{
	int32_t of_layout = kind->positions(cluster), most = (settings->positions + layouts - 1) / layouts;
	int all = of_layout <= 64 || of_layout <= most;
	return (struct positions){of_layout, all ? of_layout : most, chance_of(7, (uint64_t)of_layout)};
}

static int32_t next_position(struct positions *positions, int32_t number)
{
	return positions->tried == positions->of_layout ? number
	                                                : chance_below(&positions->chance, positions->of_layout);
}

/* The trials of a seed are those of all kinds that have so many positions. */
static void run_layout(const struct settings *settings, const struct trial_family *family,
                       const struct wlb_verdict_layout *layout, int32_t layouts, struct score *scores)
{
	struct cluster cluster = cluster_new(layout);
	struct positions positions[MOST_KINDS];
	int32_t most = 0;
	for (int32_t k = 0; k < family->count; k++) {
		positions[k] = choose_positions(settings, &family->kinds[k], &cluster, layouts);
		most = positions[k].tried > most ? positions[k].tried : most;
	}
	for (int32_t i = 0; i < most; i++) {
		struct trial trials[MOST_KINDS];
		int32_t count = 0;
		for (int32_t k = 0; k < family->count; k++)
			if (i < positions[k].tried)
				trials[count++] =
					(struct trial){&family->kinds[k], next_position(&positions[k], i), &scores[k]};
		if (i % settings->parts == settings->part)
			family->run(&cluster, (uint64_t)i + 1, trials, count);
	}
	cluster_free(&cluster);
}

static void print_score(const struct trial_kind *kind, const struct score *score, int32_t layouts)
{
	printf("{\"fault\": \"%s\", \"ranks\": %d, \"layouts\": %d, \"unit\": \"%s\", \"planted\": %lld, "
	       "\"named\": %lld, \"others\": %lld, \"costs\": %lld, \"costs_good\": %lld, \"cost_errors\": %lld, "
	       "\"cost_error\": %.17g, \"after\": [",
	       kind->name, score->ranks, layouts, kind->unit, (long long)score->planted, (long long)score->named,
	       (long long)score->others, (long long)score->costs, (long long)score->costs_good,
	       (long long)score->cost_errors, score->cost_error);
	for (int64_t i = 0; i < score->named; i++)
		printf("%s%.9g", i > 0 ? ", " : "", score->after[i]);
	printf("]}\n");
}

static int is_missed(const struct trial_kind *kind, const struct score *score)
{
	double named = (double)score->named;
	return !kind->beyond &&
	       (named < goal * (double)score->planted || named < goal * (named + (double)score->others));
}

static void run_family(struct settings *settings, const struct trial_family *family, int32_t ranks)
{
	int32_t count;
	const struct wlb_verdict_layout *layouts = cluster_layouts(ranks, &count);
	struct score scores[MOST_KINDS] = {0};
	for (int32_t k = 0; k < family->count; k++) {
		scores[k].name = family->kinds[k].name;
		scores[k].ranks = ranks;
	}
	for (int32_t l = 0; l < count; l++)
		run_layout(settings, family, &layouts[l], count, scores);
	for (int32_t k = 0; k < family->count; k++) {
		if (scores[k].planted > 0)
			print_score(&family->kinds[k], &scores[k], count);
		settings->missed += is_missed(&family->kinds[k], &scores[k]);
		free(scores[k].after);
	}
}

static void run_healthy(struct settings *settings, const struct healthy_kind *kind, int32_t ranks)
{
	int32_t count;
	const struct wlb_verdict_layout *layouts = cluster_layouts(ranks, &count);
	for (int32_t l = 0; l < count; l++) {
		const struct wlb_verdict_layout *x = &layouts[l];
		struct cluster cluster = cluster_new(x);
		int64_t found = kind->run(&cluster, kind, settings->steps, (uint64_t)l + 1);
		printf("{\"healthy\": \"%s\", \"ranks\": %d, \"layout\": \"tp=%d,cp=%d,pp=%d,dp=%d\", "
		       "\"steps\": %lld, \"verdicts\": %lld}\n",
		       kind->name, ranks, x->tp, x->cp, x->pp, x->dp, (long long)settings->steps, (long long)found);
		settings->missed += found > 0;
		cluster_free(&cluster);
	}
}

static void run_clocks(struct settings *settings, int32_t ranks)
{
	int32_t count;
	const struct wlb_verdict_layout *layouts = cluster_layouts(ranks, &count);
	struct clock_score score = {0};
	for (int32_t l = 0; l < count; l++) {
		struct cluster cluster = cluster_new(&layouts[l]);
		for (int i = 0; i < CLOCK_TRIALS; i++)
			clock_trial(&cluster, (uint64_t)i + 1, &score);
		cluster_free(&cluster);
	}
	printf("{\"clocks\": %d, \"layouts\": %d, \"trials\": %lld, \"furthest_s\": %.9g, "
	       "\"furthest_after_s\": %.9g, \"late_found\": %lld}\n",
	       ranks, count, (long long)score.trials, score.furthest_s, score.furthest_after_s,
	       (long long)score.late_found);
	settings->missed += score.late_found < score.trials;
}

static int is_asked(const struct settings *settings, const char *kinds)
{
	return settings->kinds == NULL || strcmp(settings->kinds, kinds) == 0;
}

static void run_ranks(struct settings *settings, int32_t ranks)
{
	const struct trial_family *const families[] = {&still_family, &slow_family};
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		if (is_asked(settings, families[i]->name))
			run_family(settings, families[i], ranks);
	if (is_asked(settings, "clocks") && settings->part == 0)
		run_clocks(settings, ranks);
	for (int32_t k = 0; k < healthy_kind_count && is_asked(settings, "healthy"); k++)
		if (k % settings->parts == settings->part)
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
			if (sscanf(optarg, "%d/%d", &settings->part, &settings->parts) != 2 || settings->part < 0 ||
			    settings->part >= settings->parts)
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
		                "[--kinds slow|still|clocks|healthy] [--part I/N] [--check]\n");
		return 2;
	}
	if (settings.ranks > 0)
		run_ranks(&settings, settings.ranks);
	for (size_t i = 0; settings.ranks == 0 && i < sizeof(small) / sizeof(small[0]); i++)
		run_ranks(&settings, small[i]);
	printf("{\"processor_s\": %.1f}\n", busy_s());
	return settings.check && settings.missed > 0;
}

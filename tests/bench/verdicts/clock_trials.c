#include "tests/bench/verdicts/clock_trials.h"

#include <math.h>
#include <stdlib.h>

#include "tests/bench/verdicts/node_clocks.h"
#include "tests/bench/verdicts/trials.h"

/* Samples of so many calls in each step: of groups drawn at random, and now and then of all ranks. */
enum { STEPS = 200, GROUPS_OF_STEP = 8, WORLD_EVERY = 10 };
static const double step_s = 2.0;
static const double entered_within_s = 0.01, left_within_s = 0.002, late_s = 0.2;

struct clock_trial {
	const struct cluster *cluster;
	struct wlb_verdict_detector *detector;
	struct node_clocks clocks;
	struct chance chance;
	int32_t late_rank;
	double *entered_s; /* [ranks] of a sample */
	double *left_s;
};

static double read_clock(const struct clock_trial *trial, int32_t rank, double at_s)
{
	return node_clocks_read(&trial->clocks, trial->cluster->world->node_of[rank], at_s);
}

static void sample(struct clock_trial *trial, int32_t g, double now_s)
{
	const struct wlb_verdict_group *group = &trial->cluster->world->groups[g];
	double last_s = now_s;
	for (int32_t m = 0; m < group->count; m++) {
		int32_t rank = group->members[m];
		double at_s = now_s + chance_between(&trial->chance, 0.0, entered_within_s) +
		              (rank == trial->late_rank ? late_s : 0.0);
		last_s = fmax(last_s, at_s);
		trial->entered_s[m] = read_clock(trial, rank, at_s);
	}
	for (int32_t m = 0; m < group->count; m++)
		trial->left_s[m] = read_clock(trial, group->members[m],
		                              last_s + chance_between(&trial->chance, 0.0, left_within_s));
	struct wlb_verdict_sample given = {.group = g,
	                                   .sequence = 1,
	                                   .bytes = 1.0,
	                                   .entered_s = trial->entered_s,
	                                   .left_s = trial->left_s,
	                                   .count = group->count};
	wlb_verdict_take_sample(trial->detector, &given, NULL);
}

static void run_steps(struct clock_trial *trial, int64_t first)
{
	int32_t groups = trial->cluster->world->group_count;
	for (int64_t step = first; step < first + STEPS; step++) {
		for (int32_t i = 0; i < GROUPS_OF_STEP; i++)
			sample(trial, chance_below(&trial->chance, groups), step_s * (double)step + 0.2 * i);
		/* The group of all ranks is the last. */
		if (step % WORLD_EVERY == 0)
			sample(trial, groups - 1, step_s * (double)step + 1.8);
	}
}

/* Returns how far the difference of any clock and that of rank 0 is off. */
static double furthest_s(const struct clock_trial *trial, double now_s)
{
	double furthest = 0.0, first_s = wlb_verdict_clock_ahead_s(trial->detector, 0);
	for (int32_t r = 1; r < trial->cluster->world->ranks; r++) {
		double told_s = wlb_verdict_clock_ahead_s(trial->detector, r) - first_s;
		furthest = fmax(furthest, fabs(told_s - read_clock(trial, r, now_s) + read_clock(trial, 0, now_s)));
	}
	return furthest;
}

static int is_late_found(const struct clock_trial *trial)
{
	int32_t latest = 0;
	for (int32_t r = 1; r < trial->cluster->world->ranks; r++)
		if (wlb_verdict_lateness_s(trial->detector, r) > wlb_verdict_lateness_s(trial->detector, latest))
			latest = r;
	return latest == trial->late_rank;
}

void clock_trial(const struct cluster *cluster, uint64_t seed, struct clock_score *score)
{
	struct clock_trial trial = {.cluster = cluster, .detector = must_detect(cluster), .chance = chance_of(seed, 8)};
	size_t ranks = (size_t)cluster->world->ranks;
	trial.entered_s = must_allocate(ranks, sizeof(double));
	trial.left_s = must_allocate(ranks, sizeof(double));
	trial.late_rank = chance_below(&trial.chance, cluster->world->ranks);
	node_clocks_init(&trial.clocks, cluster->world->nodes, seed);
	trial.clocks.set_at_s = step_s * STEPS;
	run_steps(&trial, 0);
	score->furthest_s = fmax(score->furthest_s, furthest_s(&trial, step_s * STEPS - 0.1));
	int found = is_late_found(&trial);
	run_steps(&trial, STEPS);
	score->furthest_after_s = fmax(score->furthest_after_s, furthest_s(&trial, 2.0 * step_s * STEPS));
	score->late_found += found && is_late_found(&trial);
	score->trials++;
	node_clocks_free(&trial.clocks);
	free(trial.entered_s);
	free(trial.left_s);
	wlb_verdict_free(trial.detector);
}

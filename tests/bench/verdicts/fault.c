#include "tests/bench/verdicts/fault.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_MISSES = 20 };

static int has_rank(const struct wlb_verdict *verdict, int32_t rank)
{
	for (int32_t i = 0; i < verdict->rank_count && i < WLB_VERDICT_RANKS; i++)
		if (verdict->ranks[i] == rank)
			return 1;
	return 0;
}

static int names(const struct wlb_verdict *verdict, const struct fault *fault)
{
	if (verdict->kind != fault->kind)
		return 0;
	if (fault->node >= 0 && fault->ranks_per_node > 0 && verdict->node < 0 && verdict->rank_count == 2)
		return verdict->ranks[0] / fault->ranks_per_node == fault->node ||
		       verdict->ranks[1] / fault->ranks_per_node == fault->node;
	if (fault->node >= 0)
		return verdict->node == fault->node;
	if (fault->other >= 0)
		return verdict->rank_count == 2 && verdict->ranks[0] == fault->other &&
		       verdict->ranks[1] == fault->rank;
	if (fault->group >= 0)
		return verdict->group == fault->group;
	if (fault->rank >= 0)
		return verdict->node < 0 && verdict->rank_count == 1 && has_rank(verdict, fault->rank);
	return verdict->node < 0 && verdict->rank_count > 1;
}

void outcome_count(struct outcome *outcome, const struct fault *faults, int32_t count,
                   const struct wlb_verdict *verdict, double after)
{
	if (verdict->cost_percent >= 0.0 && verdict->stage != WLB_VERDICT_OVER &&
	    verdict->kind >= WLB_VERDICT_SLOW_COMPUTE)
		outcome->cost_percent[verdict->kind <= WLB_VERDICT_SLOW_NODE ? OF_COMPUTATION : OF_THE_REST] =
			verdict->cost_percent;
	for (int32_t f = 0; f < count; f++)
		if (names(verdict, &faults[f])) {
			if (!outcome->found[f] && verdict->stage == WLB_VERDICT_CONFIRMED) {
				outcome->found[f] = 1;
				outcome->after[f] = after;
				outcome->named++;
			}
			return;
		}
	if (verdict->stage == WLB_VERDICT_OVER || (verdict->id < MOST_IDS && outcome->counted[verdict->id]))
		return;
	if (verdict->id < MOST_IDS)
		outcome->counted[verdict->id] = 1;
	if (outcome->others++ == 0)
		snprintf(outcome->miss, sizeof(outcome->miss), "%s, %s, after %.0f: %s",
		         verdict->stage == WLB_VERDICT_SUSPECTED ? "suspected" : "confirmed",
		         wlb_verdict_kind_name(verdict->kind), after, verdict->evidence);
}

static void add_after(struct score *score, double after)
{
	if (score->named >= score->space) {
		score->space = 2 * score->space + 64;
		score->after = reallocarray(score->after, (size_t)score->space, sizeof(*score->after));
		if (score->after == NULL)
			exit(1);
	}
	score->after[score->named++] = after;
}

struct outcome outcome_none(void)
{
	return (struct outcome){.cost_percent = {-1.0, -1.0}};
}

static void add_cost(struct score *score, double told_percent, double true_percent)
{
	double error = fabs(told_percent - true_percent);
	score->costs++;
	score->costs_good += error <= fmax(0.2 * true_percent, 0.5);
	if (true_percent >= 2.0) {
		score->cost_error += error / true_percent;
		score->cost_errors++;
	}
}

void score_add(struct score *score, const struct outcome *outcome, int32_t faults, const double *true_percent)
{
	score->planted += faults;
	score->others += outcome->others;
	for (int32_t f = 0; f < faults; f++)
		if (outcome->found[f])
			add_after(score, outcome->after[f]);
	for (int i = 0; i < FAULT_SORTS; i++)
		if (outcome->named == faults && outcome->cost_percent[i] >= 0.0)
			add_cost(score, outcome->cost_percent[i], true_percent[i]);
	if ((outcome->named < faults || outcome->others > 0) && score->misses_told++ < MOST_MISSES)
		printf("# %s, %d ranks: %d of %d named, %d others; %s\n", score->name, score->ranks, outcome->named,
		       faults, outcome->others, outcome->miss);
}

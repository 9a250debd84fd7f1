/* Faults that are planted, and whether verdicts name them. */
#ifndef TESTS_BENCH_VERDICTS_FAULT_H
#define TESTS_BENCH_VERDICTS_FAULT_H

#include "libverdict/wlb_verdict.h"

enum { MOST_FAULTS = 4, MOST_IDS = 1024 };

/* Faults whose cost is shown together. */
enum fault_sort { OF_COMPUTATION, OF_THE_REST, FAULT_SORTS };

struct fault {
	enum wlb_verdict_kind kind;
	int32_t rank;  /* -1: not a rank's */
	int32_t node;  /* -1: not a node's */
	int32_t group; /* of a link, -1: none */
	double factor; /* by which it takes longer, or the share of a step that is waited */
	int64_t from_step;
	int32_t other;          /* of a pair: the source; -1: none */
	int finite;             /* bad values: 0 NaN, 1 far off */
	int32_t ranks_per_node; /* where a pair of which one is on the node names the node too; 0: it does not */
};

/* What happened to the faults of a trial. */
struct outcome {
	int32_t planted;
	int32_t named;  /* of them */
	int32_t others; /* verdicts that name something else */
	int found[MOST_FAULTS];
	double after[MOST_FAULTS];        /* steps or seconds until it was named */
	double cost_percent[FAULT_SORTS]; /* the last that was reported; -1: none */
	unsigned char counted[MOST_IDS];
	char miss[1024]; /* the first wrong verdict, or what was not named */
};

/* Counts a verdict, reported `after` steps or seconds of the fault; each id that names something else counts once. */
void outcome_count(struct outcome *outcome, const struct fault *faults, int32_t count,
                   const struct wlb_verdict *verdict, double after);

/* The results of many trials of a kind. */
struct score {
	const char *name; /* of the kind */
	int32_t ranks;
	int64_t planted;
	int64_t named;
	int64_t others;
	int64_t costs;      /* trials whose cost was reported and is known */
	int64_t costs_good; /* within 20 % of the truth, or half a percent of the step */
	double cost_error;  /* sum of the deviations over the truth, of those of 2 % and more */
	int64_t cost_errors;
	double *after; /* [named] */
	int64_t space;
	int64_t misses_told;
};

struct outcome outcome_none(void);

/* true_percent: what the faults of each sort cost. */
void score_add(struct score *score, const struct outcome *outcome, int32_t faults, const double *true_percent);

#endif

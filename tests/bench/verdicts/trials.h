/* Trials: a run, perhaps with faults, and the verdicts on it. */
#ifndef TESTS_BENCH_VERDICTS_TRIALS_H
#define TESTS_BENCH_VERDICTS_TRIALS_H

#include "tests/bench/verdicts/cluster.h"
#include "tests/bench/verdicts/fault.h"

/* A kind of fault. */
struct trial_kind {
	const char *name;
	/* How many positions a fault of this kind has in a layout; 0: it cannot happen there. */
	int32_t (*positions)(const struct cluster *cluster);
	enum wlb_verdict_kind fault;
	int32_t faults;   /* at once */
	double factor;    /* of slow ones: by which it takes longer, or the share of a step that is waited */
	double noise;     /* times that of the table of constants: from step to step */
	const char *unit; /* of the time until it is named */
	int variant;
	int beyond;     /* 1: harder than what the goals are for */
	int other_work; /* 1: of a replica with less work, and of fixed time that is not predicted */
	/* Of two faults of different kinds, the second. */
	int mixed;
	enum wlb_verdict_kind second;
	double second_factor;
};

/* A trial: a kind of fault at a position. */
struct trial {
	const struct trial_kind *kind;
	int32_t position;
	struct score *score;
};

/* Kinds of trials, with the function that runs trials of one layout and seed, of any of these kinds. Those whose
 * healthy beginning is the same share it. */
struct trial_family {
	const char *name;
	const struct trial_kind *kinds;
	int32_t count; /* at most MOST_KINDS */
	void (*run)(const struct cluster *cluster, uint64_t seed, const struct trial *trials, int32_t count);
};

enum { MOST_KINDS = 32 };

extern const struct trial_family slow_family;  /* steps take longer, or values are bad */
extern const struct trial_family still_family; /* nothing moves any more */

/* A kind of healthy run. Returns the number of verdicts on `steps` steps, and prints the first. */
struct healthy_kind {
	const char *name;
	int64_t (*run)(const struct cluster *cluster, const struct healthy_kind *kind, int64_t steps, uint64_t seed);
	int variant;
};

extern const struct healthy_kind healthy_kinds[];
extern const int32_t healthy_kind_count;

/* Ends the program with a message where memory is out. */
struct wlb_verdict_detector *must_detect(const struct cluster *cluster);

#endif

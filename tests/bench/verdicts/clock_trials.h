/* How well the clocks of ranks are aligned by samples of collectives. */
#ifndef TESTS_BENCH_VERDICTS_CLOCK_TRIALS_H
#define TESTS_BENCH_VERDICTS_CLOCK_TRIALS_H

#include "tests/bench/verdicts/cluster.h"

struct clock_score {
	int64_t trials;
	int64_t late_found; /* in which the rank that enters calls late was found, before and after a clock was set back
	                     */
	double furthest_s;  /* that the difference of two clocks was off, before one of them was set back */
	double furthest_after_s; /* and after */
};

/* Runs a trial: some minutes of samples by clocks that are ahead and drift, then one is set back, and as long again. */
void clock_trial(const struct cluster *cluster, uint64_t seed, struct clock_score *score);

#endif

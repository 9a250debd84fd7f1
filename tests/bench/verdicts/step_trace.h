/*
 * Steps of a 4D layout at the level of groups, without the order of calls inside a step: tensor and context parallel
 * ranks of a stage take as long as the slowest of them, a pipeline as 1F1B does, data parallel replicas as the slowest.
 * Fast enough for 16,384 ranks.
 */
#ifndef TESTS_BENCH_VERDICTS_STEP_TRACE_H
#define TESTS_BENCH_VERDICTS_STEP_TRACE_H

#include "tests/bench/verdicts/chance.h"
#include "tests/bench/verdicts/cluster.h"
#include "tests/bench/verdicts/fault.h"
#include "tests/bench/verdicts/node_clocks.h"

struct step_trace {
	const struct cluster *cluster;
	const struct fault *faults;
	int32_t fault_count;
	int transfers;        /* 1: ranks report the transfers of their groups */
	int loaders;          /* 1: and how long they waited for their loaders */
	int values;           /* 1: and their losses and gradients */
	double noise;         /* from step to step, times that of constants.h */
	double lasting_times; /* between ranks, the same */
	struct chance chance;
	struct node_clocks clocks; /* by which ranks measure */
	double begins_s;           /* of the step, by a clock that nothing is wrong with */
	int64_t step;
	double seconds;                /* of the step */
	double without_s[FAULT_SORTS]; /* of the same step without the faults of a sort */
	double *lasting;               /* [ranks] logarithms */
	double *correlated;            /* [ranks] */
	double *computed_s;            /* [ranks] */
	double *healthy_s;             /* [ranks] */
	double *work;                  /* [replicas] */
	double *stage_s;               /* [stages of replicas], twice: with and without faults */
};

void step_trace_init(struct step_trace *trace, const struct cluster *cluster, uint64_t seed);
void step_trace_free(struct step_trace *trace);

/* Makes the next step, whose predicted work is `times` the usual, and gives it to the detector, if any. */
void step_trace_next(struct step_trace *trace, double times, struct wlb_verdict_detector *detector);

/* The logarithm of what a rank's computation takes beyond its work. */
double step_trace_noise(struct step_trace *trace, int32_t rank);

#endif

/*
 * Steps of a 4D layout at the level of groups, without the order of calls inside a step: tensor and context parallel
 * ranks of a stage take as long as the slowest of them, a pipeline as 1F1B does, data parallel replicas as the slowest.
 * Fast enough for 16,384 ranks.
 *
 * A step is drawn, which is all that is random in it, and then taken with the faults that there are: runs that differ
 * in their faults alone take the same steps.
 */
#ifndef TESTS_BENCH_VERDICTS_STEP_TRACE_H
#define TESTS_BENCH_VERDICTS_STEP_TRACE_H

#include "tests/bench/verdicts/chance.h"
#include "tests/bench/verdicts/cluster.h"
#include "tests/bench/verdicts/fault.h"
#include "tests/bench/verdicts/node_clocks.h"

/* What ranks report of a step beside its computation. */
struct step_reports {
	int transfers; /* 1: the transfers of their groups */
	int loaders;   /* 1: how long they waited for their loaders */
	int values;    /* 1: their losses and gradients */
};

/* What is random in a step. */
struct step_draws {
	double *work;       /* [replicas] predicted */
	double *healthy_s;  /* [ranks] of computation */
	double *waited;     /* [ranks] for the loader, a share of the computation */
	double *wait_times; /* [ranks] by which a fault of the loader is more or less in this step */
	double *loss;       /* [ranks] */
	double *gradient;   /* [ranks] the norm */
	double *transfer_s; /* as the transfers of the cluster */
};

/* What faults do to the ranks and transfers. */
struct step_effects {
	double *compute_times;  /* [ranks] by which computation takes longer */
	double *loader_share;   /* [ranks] of a step that is waited */
	double *storage_share;  /* [ranks] of that, for the file system */
	double *transfer_times; /* as the transfers of the cluster */
};

struct step_trace {
	const struct cluster *cluster;
	const struct fault *faults;
	int32_t fault_count;
	struct step_reports reports;
	double noise;       /* from step to step, times that of constants.h */
	double fixed_share; /* of the usual computation, which predicted work leaves out */
	double first_work;  /* of the first replica, times that of the others */
	struct chance chance;
	struct node_clocks clocks; /* by which ranks measure */
	double begins_s;           /* of the step, by a clock that nothing is wrong with */
	int64_t step;
	double seconds;                /* of the step */
	double without_s[FAULT_SORTS]; /* of the same step without the faults of a sort */
	double *lasting;               /* [ranks] logarithms */
	double *correlated;            /* [ranks] */
	double *computed_s;            /* [ranks] */
	double *work;                  /* [replicas] */
	double *stage_s;               /* [stages of replicas], twice: with and without faults */
	struct step_draws draws;       /* of the step */
	struct step_effects effects;
};

void step_trace_init(struct step_trace *trace, const struct cluster *cluster, uint64_t seed,
                     struct step_reports reports);
void step_trace_free(struct step_trace *trace);

/* From now on predicted work leaves out the fixed time of operations, and the first replica has less work. */
void step_trace_leave_out_fixed_time(struct step_trace *trace);

/* Memory for the draws of a step; step_draws_free frees it. */
struct step_draws step_draws_new(const struct step_trace *trace);
void step_draws_free(struct step_draws *draws);

/* Draws the step after those that were drawn before; its predicted work is `times` the usual. */
void step_trace_draw(struct step_trace *trace, double times, struct step_draws *draws);

/* From now on there are these faults, which must outlive the trace. */
void step_trace_plant(struct step_trace *trace, const struct fault *faults, int32_t count);

/* Makes the next step of what was drawn, and gives it to the detector, if any. */
void step_trace_take(struct step_trace *trace, const struct step_draws *draws, struct wlb_verdict_detector *detector);

/* Draws the next step and takes it. */
void step_trace_next(struct step_trace *trace, double times, struct wlb_verdict_detector *detector);

#endif

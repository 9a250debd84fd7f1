/* What a reporter on each node tells about its ranks each second: states of a program, with clocks and delays. */
#ifndef TESTS_BENCH_VERDICTS_REPORTER_H
#define TESTS_BENCH_VERDICTS_REPORTER_H

#include "tests/bench/verdicts/program.h"

/* What the reports of a step are subject to. Times are the program's. */
struct report_conditions {
	int32_t gone_rank; /* -1: none; its process is gone from gone_s on */
	double gone_s;
	double abort_s;       /* the launcher ends the other ranks so long after; INFINITY: never */
	int32_t silent_node;  /* -1: none; its reporter tells nothing from gone_s on */
	int32_t stopped_rank; /* -1: none; by a signal, from gone_s on */
	int32_t second_gone_rank;
	double suspended_at_s; /* all ranks are stopped by signals, the nodes within a second; INFINITY: never */
	double suspended_s;    /* for so long, which the program's time does not count */
	int reporters_too;     /* 1: no report is made meanwhile */
	int32_t ring_break;    /* of the stuck group: the member that receives nothing more; -1: bytes are not known */
	double lost;           /* share of the reports that never arrive */
	double repeated;       /* or arrive twice */
};

struct report_conditions report_conditions_none(void);

struct reporter {
	struct program *program;
	struct wlb_verdict_detector *detector;
	struct chance chance;
	double told_s;      /* the next time to report at, the program's */
	double ahead_s;     /* of the detector's clock against the program's time */
	double suspended_s; /* for which the program has been suspended */
	uint64_t report;
	int32_t *position;                       /* [ranks] the event of the step that the rank is in */
	struct wlb_verdict_call (*calls)[SLOTS]; /* [ranks] */
};

void reporter_init(struct reporter *reporter, struct program *program, struct wlb_verdict_detector *detector,
                   uint64_t seed);
void reporter_free(struct reporter *reporter);

/* Must be called when a step has ended, before the program runs the next. */
void reporter_end_step(struct reporter *reporter);

/* Gives the detector the states of a second that begins at told_s, and advances told_s by it, unless the job is
 * suspended. Returns the detector's time at its end. */
double reporter_second(struct reporter *reporter, const struct report_conditions *conditions);

#endif

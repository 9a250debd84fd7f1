/* A small run whose ranks are moved by hand, and the detector that watches it. */
#ifndef TESTS_UNIT_VERDICT_RUN_H
#define TESTS_UNIT_VERDICT_RUN_H

#include "libverdict/wlb_verdict.h"

enum { RUN_RANKS = 64, RUN_GROUPS = 256, RUN_VERDICTS = 64 };

struct run_rank {
	enum wlb_verdict_activity activity;
	enum wlb_verdict_process process;
	double began_s;
	int64_t step;
	double work;
	int32_t group; /* of the call that it is blocked in; -1: none */
	double received_bytes;
	int silent; /* 1: nothing is reported of it */
};

struct run {
	const struct wlb_verdict_world *world;
	struct wlb_verdict_world *made; /* `world` where run_begin has made it */
	struct wlb_verdict_detector *detector;
	double now_s;   /* of the ranks */
	double clock_s; /* the detector's clock is so much ahead of it */
	uint64_t report;
	struct run_rank rank[RUN_RANKS];
	uint64_t entered[RUN_RANKS][RUN_GROUPS];
	uint64_t left[RUN_RANKS][RUN_GROUPS];
	struct wlb_verdict verdicts[RUN_VERDICTS];
	int32_t space; /* for verdicts; RUN_VERDICTS unless the test sets less */
	int32_t count; /* of the last judgement */
	int64_t step;  /* the next that run_step reports */
	uint64_t random;
};

/* Ranks compute in step 10, after the warm-up, when the run begins. */
void run_begin(struct run *run, int tp, int cp, int pp, int dp, int ranks_per_node);
/* The same in a world of the test's own, which must outlive the run. */
void run_begin_in(struct run *run, const struct wlb_verdict_world *world);
void run_end(struct run *run);

/* The rank begins something; a call that it was blocked in it has left. */
void run_do(struct run *run, int32_t rank, enum wlb_verdict_activity activity);
/* The rank enters its next call of the group and is blocked in it. */
void run_call(struct run *run, int32_t rank, int32_t group);
/* Seconds pass; each second all ranks report and the detector judges. */
void run_seconds(struct run *run, int seconds);

/* A verdict of the last judgement of that kind; NULL: none. */
const struct wlb_verdict *run_find(const struct run *run, enum wlb_verdict_kind kind);

/* The group of a kind that has both ranks, for PP with the first as the sender; fails the test where there is none. */
int32_t run_group(const struct run *run, enum wlb_verdict_group_kind kind, int32_t first, int32_t second);

/* All ranks end a step of 2 % noise: `change` may change what a rank reports. The detector judges. */
void run_step(struct run *run, void (*change)(const struct run *run, struct wlb_verdict_step *step));
/* So many times; a rank whose number `change` sets to -1 does not report. */
void run_steps(struct run *run, int steps, void (*change)(const struct run *run, struct wlb_verdict_step *step));

/* Runs until a verdict of the kind is there, and none other; returns after how many steps, fails after `most`. */
int run_until(struct run *run, enum wlb_verdict_kind kind, int most,
              void (*change)(const struct run *run, struct wlb_verdict_step *step));
/* Fails where there is a verdict in so many steps. */
void run_expect_none(struct run *run, int steps, void (*change)(const struct run *run, struct wlb_verdict_step *step));

/* Uniform from 0 to 1, the same in every run. */
double run_random(struct run *run);

/* tp 2, pp 2, dp 2 on four nodes: rank 1 waits for rank 0 in their tp group, rank 2 for what rank 0 sends, rank 3 for
 * rank 2, and the other replica at the end of the step. */
void run_block_on_rank_0(struct run *run);

/* Fails where the last judgement has any verdict. */
void run_expect_no_verdict(const struct run *run);
/* The only verdict of the last judgement; fails where it is another, or there are more. */
const struct wlb_verdict *run_expect_one(const struct run *run, enum wlb_verdict_kind kind,
                                         enum wlb_verdict_stage stage);

#endif

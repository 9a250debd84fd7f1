/* Verdicts of ranks and nodes that are slow, and what they cost. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/verdict/run.h"

enum { ONSET = 40 };

static void slow_rank_5(const struct run *run, struct wlb_verdict_step *step)
{
	if (run->step >= ONSET && run->step < ONSET + 60 && step->rank == 5)
		step->computed_s *= 1.1;
}

static void a_rank_slow_by_a_tenth_is_named(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 8, 4);
	run_expect_none(&run, ONSET, slow_rank_5);
	assert_in_range(run_until(&run, WLB_VERDICT_SLOW_COMPUTE, 50, slow_rank_5), 5, 30);
	assert_int_equal(run.verdicts[0].rank_count, 1);
	assert_int_equal(run.verdicts[0].ranks[0], 5);
	assert_true(run.verdicts[0].certainty >= 0.99);
	assert_in_range(run.verdicts[0].since_step, ONSET, ONSET + 4);
	run_steps(&run, 30, slow_rank_5);
	/* The slowest of the others is 4 % above the mean in the mean of steps. */
	assert_true(run.verdicts[0].cost_percent > 4.0 && run.verdicts[0].cost_percent < 9.0);
	/* When it is well again the verdict ends. */
	int64_t until = ONSET + 60 + 30;
	while (run.count == 1 && run.verdicts[0].stage == WLB_VERDICT_CONFIRMED && run.step < until)
		run_step(&run, slow_rank_5);
	assert_int_equal(run.verdicts[0].stage, WLB_VERDICT_OVER);
	run_expect_none(&run, 20, NULL);
	run_end(&run);
}

/* Rank 5 is slow for a while; then other programs take the processors of all, for some steps at a time. */
static void slow_rank_5_before_other_programs(const struct run *run, struct wlb_verdict_step *step)
{
	uint64_t some = (uint64_t)(run->step / 4 * 64 + step->rank) * UINT64_C(0x9e3779b97f4a7c15);
	if (run->step >= ONSET && run->step < ONSET + 60 && step->rank == 5)
		step->computed_s *= 1.2;
	if (run->step >= ONSET + 60)
		step->computed_s *= 1.0 + 0.25 * (double)((some ^ some >> 31) % 1000) / 1000.0;
}

static void a_verdict_ends_also_where_steps_vary_more_than_before(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 8, 4);
	run_steps(&run, ONSET + 59, slow_rank_5_before_other_programs);
	assert_int_equal(run.count, 1);
	assert_int_equal(run.verdicts[0].stage, WLB_VERDICT_CONFIRMED);
	int is_over = 0;
	for (int i = 0; i < 200 && !is_over; i++) {
		run_step(&run, slow_rank_5_before_other_programs);
		is_over = run.count == 0;
	}
	assert_true(is_over);
	run_end(&run);
}

static void slower_rank_5(const struct run *run, struct wlb_verdict_step *step)
{
	if (run->step >= ONSET && step->rank == 5)
		step->computed_s *= run->step < ONSET + 70 ? 1.2 : 1.6;
}

/* By 1.6 + 1 / 8 instead of 1.04 + 1 / 8 in steps of 1.6 s, once the steps before are no longer among those that cost
 * is found from. */
static void the_cost_follows_a_rank_that_becomes_slower(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 8, 4);
	run_steps(&run, ONSET + 70, slower_rank_5);
	assert_true(run.verdicts[0].cost_percent > 10.0 && run.verdicts[0].cost_percent < 20.0);
	run_steps(&run, 140, slower_rank_5);
	assert_true(run.verdicts[0].cost_percent > 45.0 && run.verdicts[0].cost_percent < 60.0);
	run_end(&run);
}

static void slow_rank_5_from_the_start(const struct run *run, struct wlb_verdict_step *step)
{
	(void)run;
	if (step->rank == 5)
		step->computed_s *= 1.2;
}

static void a_rank_that_is_slow_from_the_start_is_named(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 8, 4);
	run_until(&run, WLB_VERDICT_SLOW_COMPUTE, 50, slow_rank_5_from_the_start);
	assert_int_equal(run.verdicts[0].ranks[0], 5);
	run_steps(&run, 30, slow_rank_5_from_the_start);
	assert_true(run.verdicts[0].cost_percent > 10.0 && run.verdicts[0].cost_percent < 20.0);
	run_end(&run);
}

/* Documents of unequal length: each rank has other work in each step, some ten times as much, and one always more. */
static void unequal_work(const struct run *run, struct wlb_verdict_step *step)
{
	step->work = 1.0 + (double)((step->rank * 7 + run->step * 13) % 10);
	if (step->rank == 3)
		step->work = 20.0;
	step->computed_s *= step->work;
}

/* The last stage has the output head, which predicted work does not know. */
static void heavier_stage(const struct run *run, struct wlb_verdict_step *step)
{
	step->computed_s *= run->world->peers_of[step->rank] == 1 ? 1.3 : 1.0;
}

/* All ranks are slower in turn: the power cap of a cluster. */
static void all_slower(const struct run *run, struct wlb_verdict_step *step)
{
	step->computed_s *= run->step >= ONSET ? 1.3 : 1.0;
}

static void a_step_of_outliers(const struct run *run, struct wlb_verdict_step *step)
{
	if (run->step % 10 == 0 && step->rank == 7)
		step->computed_s *= 5.0;
}

static void a_checkpoint(const struct run *run, struct wlb_verdict_step *step)
{
	step->aside_s = run->step % 10 == 0 ? 100.0 : 0.0;
}

/* The last stage compiles in the first steps. */
static void compilation(const struct run *run, struct wlb_verdict_step *step)
{
	if (run->step < 3 && run->world->peers_of[step->rank] == 1)
		step->computed_s *= 30.0;
}

static void healthy_differences_are_no_verdict(void **state)
{
	(void)state;
	static void (*const changes[])(const struct run *run, struct wlb_verdict_step *step) = {
		NULL, unequal_work, heavier_stage, all_slower, a_step_of_outliers, a_checkpoint, compilation};
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct run run;
		run_begin(&run, 2, 1, 2, 8, 4);
		run_expect_none(&run, 400, changes[i]);
		run_end(&run);
	}
}

/* Once, the other ranks of its node take longer, too. */
static void its_node_takes_longer_once(const struct run *run, struct wlb_verdict_step *step)
{
	slow_rank_5(run, step);
	if (step->rank != 5 && run->world->node_of[step->rank] == run->world->node_of[5])
		step->computed_s *= 1.3;
}

static void a_rank_that_is_named_stays_named(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 8, 4);
	run_expect_none(&run, ONSET, slow_rank_5);
	run_until(&run, WLB_VERDICT_SLOW_COMPUTE, 50, slow_rank_5);
	uint64_t id = run.verdicts[0].id;
	run_step(&run, its_node_takes_longer_once);
	assert_int_equal(run_expect_one(&run, WLB_VERDICT_SLOW_COMPUTE, WLB_VERDICT_CONFIRMED)->id, id);
	run_end(&run);
}

static void slow_node_2(const struct run *run, struct wlb_verdict_step *step)
{
	if (run->step >= ONSET && run->world->node_of[step->rank] == 2)
		step->computed_s *= 1.1;
}

static void a_node_whose_ranks_are_all_slow_is_one_verdict(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 8, 4);
	run_expect_none(&run, ONSET, slow_node_2);
	run_until(&run, WLB_VERDICT_SLOW_NODE, 50, slow_node_2);
	assert_int_equal(run.verdicts[0].node, 2);
	run_steps(&run, 10, slow_node_2);
	assert_int_equal(run.count, 1);
	assert_int_equal(run.verdicts[0].rank_count, 4);
	run_end(&run);
}

/* Half of all ranks are on the slow node. */
static void slow_node_1_of_two(const struct run *run, struct wlb_verdict_step *step)
{
	if (run->step >= ONSET && run->world->node_of[step->rank] == 1)
		step->computed_s *= 1.1;
}

static void the_slow_one_of_two_nodes_is_named(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 1, 1, 1, 16, 8);
	run_expect_none(&run, ONSET, slow_node_1_of_two);
	assert_in_range(run_until(&run, WLB_VERDICT_SLOW_NODE, 50, slow_node_1_of_two), 5, 15);
	assert_int_equal(run.verdicts[0].node, 1);
	run_end(&run);
}

static void slow_rank_9(const struct run *run, struct wlb_verdict_step *step)
{
	(void)run;
	if (step->rank == 9)
		step->computed_s *= 1.3;
}

/* A tenth of the reports never comes, and rank 0 reports every step twice. */
static void lossy(const struct run *run, struct wlb_verdict_step *step)
{
	struct wlb_verdict_step again = *step;
	again.seconds = 1.0;
	slow_rank_5(run, step);
	if (step->rank == 0) {
		/* What comes second is not used. */
		assert_int_equal(wlb_verdict_take_step(run->detector, &again, NULL), 0);
		step->computed_s *= 2.0;
	}
	if ((step->rank * 31 + run->step * 17) % 10 == 0)
		step->rank = -1;
}

static void reports_that_are_lost_repeated_or_absurd_are_borne(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 8, 4);
	run_expect_none(&run, ONSET, lossy);
	run_until(&run, WLB_VERDICT_SLOW_COMPUTE, 50, lossy);
	assert_int_equal(run.verdicts[0].ranks[0], 5);
	struct wlb_verdict_step bad[6];
	for (int i = 0; i < 6; i++)
		bad[i] = (struct wlb_verdict_step){.rank = 1, .step = run.step, .seconds = 1.0, .work = 1.0};
	const struct wlb_verdict_transfer foreign = {.group = 9999, .calls = 1};
	bad[0].rank = 99;
	bad[1].step = -1;
	bad[2].computed_s = NAN;
	bad[3].seconds = INFINITY;
	bad[4].transfers = &foreign;
	bad[4].transfer_count = 1;
	bad[5].transfer_count = 2;
	for (int i = 0; i < 6; i++)
		assert_int_equal(wlb_verdict_take_step(run.detector, &bad[i], NULL), -1);
	/* One rank is mistaken about the step: the others count on. */
	struct wlb_verdict_step mistaken = {.rank = 1, .step = INT64_MAX / 4, .seconds = 1.0};
	assert_int_equal(wlb_verdict_take_step(run.detector, &mistaken, NULL), 0);
	run_steps(&run, 5, lossy);
	assert_int_equal(run.verdicts[0].ranks[0], 5);
	/* A run that is continued from an earlier step is followed there. */
	run.step = 3;
	run_steps(&run, 30, slow_rank_9);
	assert_int_equal(run_find(&run, WLB_VERDICT_SLOW_COMPUTE)->ranks[0], 9);
	run_end(&run);
}

/* Of a run of short steps ranks report those whose number is a multiple of 64. */
static void sparse(const struct run *run, struct wlb_verdict_step *step)
{
	slow_rank_5(run, step);
	step->step *= 64;
}

/* Ranks report four steps at once, those of odd nodes when the others have reported two more. */
static void in_batches(const struct run *run, struct wlb_verdict_step *step)
{
	enum { BATCH = 4, LATER = 2 };
	static struct wlb_verdict_step held[BATCH + LATER][RUN_RANKS];
	sparse(run, step);
	step->seconds = 1.0;
	held[run->step % (BATCH + LATER)][step->rank] = *step;
	int is_last = step->rank == run->world->ranks - 1;
	step->rank = -1;
	for (int odd = 0; odd < 2 && is_last; odd++) {
		int64_t end = run->step + 1 - LATER * odd;
		for (int64_t s = end - BATCH; s < end && end % BATCH == 0; s++)
			for (int32_t r = 0; r < run->world->ranks && s >= 0; r++)
				if (run->world->node_of[r] % 2 == odd)
					wlb_verdict_take_step(run->detector, &held[s % (BATCH + LATER)][r], NULL);
	}
}

static void steps_may_have_gaps_and_come_in_batches(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 8, 4);
	run_expect_none(&run, ONSET, sparse);
	run_until(&run, WLB_VERDICT_SLOW_COMPUTE, 50, sparse);
	assert_int_equal(run.verdicts[0].ranks[0], 5);
	run_end(&run);
	run_begin(&run, 2, 1, 2, 8, 4);
	run_expect_none(&run, ONSET, in_batches);
	run_until(&run, WLB_VERDICT_SLOW_COMPUTE, 50 + 6, in_batches);
	assert_int_equal(run.verdicts[0].ranks[0], 5);
	assert_int_equal(run.verdicts[0].rank_count, 1);
	run_end(&run);
}

/* Of one node nothing is reported: the others are judged, some steps later. */
static void without_node_3(const struct run *run, struct wlb_verdict_step *step)
{
	slow_rank_5(run, step);
	if (run->world->node_of[step->rank] == 3)
		step->rank = -1;
}

static void ranks_that_report_nothing_do_not_stop_the_test(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 8, 4);
	run_expect_none(&run, ONSET, without_node_3);
	run_until(&run, WLB_VERDICT_SLOW_COMPUTE, 50 + 10, without_node_3);
	assert_int_equal(run.verdicts[0].ranks[0], 5);
	run_end(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rank_slow_by_a_tenth_is_named),
		cmocka_unit_test(a_verdict_ends_also_where_steps_vary_more_than_before),
		cmocka_unit_test(the_cost_follows_a_rank_that_becomes_slower),
		cmocka_unit_test(a_rank_that_is_slow_from_the_start_is_named),
		cmocka_unit_test(healthy_differences_are_no_verdict),
		cmocka_unit_test(a_rank_that_is_named_stays_named),
		cmocka_unit_test(a_node_whose_ranks_are_all_slow_is_one_verdict),
		cmocka_unit_test(the_slow_one_of_two_nodes_is_named),
		cmocka_unit_test(reports_that_are_lost_repeated_or_absurd_are_borne),
		cmocka_unit_test(steps_may_have_gaps_and_come_in_batches),
		cmocka_unit_test(ranks_that_report_nothing_do_not_stop_the_test),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Verdicts of loaders that are slow, and of values that are bad. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/verdict/run.h"

enum { ONSET = 40 };

static void slow_loader_9(const struct run *run, struct wlb_verdict_step *step)
{
	step->loader_s = 0.001;
	step->aside_s = 10.0; /* a checkpoint after each step */
	if (run->step >= ONSET && step->rank == 9) {
		step->loader_s = 0.3;
		step->storage_s = 0.02;
	}
}

static void slow_storage(const struct run *run, struct wlb_verdict_step *step)
{
	step->loader_s = run->step >= ONSET ? 0.3 : 0.001;
	step->storage_s = 0.9 * step->loader_s;
}

static void loaders_and_file_systems_are_told_apart(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 8, 4);
	run_expect_none(&run, ONSET, slow_loader_9);
	run_until(&run, WLB_VERDICT_SLOW_LOADER, 50, slow_loader_9);
	assert_int_equal(run.verdicts[0].ranks[0], 9);
	assert_int_equal(run.verdicts[0].rank_count, 1);
	run_steps(&run, 20, slow_loader_9);
	assert_true(run.verdicts[0].cost_percent > 15.0 && run.verdicts[0].cost_percent < 35.0);
	run_end(&run);
	run_begin(&run, 2, 1, 2, 8, 4);
	run_expect_none(&run, ONSET, slow_storage);
	run_until(&run, WLB_VERDICT_SLOW_STORAGE, 50, slow_storage);
	run_steps(&run, 10, slow_storage);
	assert_int_equal(run.count, 1);
	assert_int_equal(run.verdicts[0].rank_count, 32);
	run_end(&run);
}

/* Another rank in two steps of three waits long, as in runs of many ranks; rank 9 in each step. */
static void slow_loader_9_among_others(const struct run *run, struct wlb_verdict_step *step)
{
	step->loader_s = 0.001;
	if (run->step >= ONSET && run->step % 3 > 0 && step->rank == (7 * run->step) % 9)
		step->loader_s = 0.25;
	if (run->step >= ONSET && step->rank == 9)
		step->loader_s = 0.35;
}

/* Two steps of three are 0.1 s longer by rank 9, and one 0.35 s, of 1.35 s. */
static void the_cost_of_a_loader_is_what_others_do_not_wait_anyway(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 8, 4);
	run_expect_none(&run, ONSET, slow_loader_9_among_others);
	run_until(&run, WLB_VERDICT_SLOW_LOADER, 50, slow_loader_9_among_others);
	run_steps(&run, 40, slow_loader_9_among_others);
	assert_int_equal(run.count, 1);
	assert_float_equal(run.verdicts[0].cost_percent, 100.0 * (0.55 / 3.0) / (1.35 - 0.55 / 3.0), 1.5);
	run_end(&run);
}

static double bad_value;

static void bad_gradient_of_6(const struct run *run, struct wlb_verdict_step *step)
{
	if (run->step >= ONSET && step->rank == 6)
		step->gradient_norm = bad_value;
}

static void all_losses_diverge(const struct run *run, struct wlb_verdict_step *step)
{
	if (run->step >= ONSET)
		step->loss = NAN;
}

static void bad_values_are_named(void **state)
{
	(void)state;
	static const double values[] = {NAN, INFINITY, 1e4};
	static const int64_t after[] = {1, 1, 3};
	struct run run;
	for (int i = 0; i < 3; i++) {
		run_begin(&run, 2, 1, 2, 8, 4);
		bad_value = values[i];
		run_expect_none(&run, ONSET, bad_gradient_of_6);
		assert_int_equal(run_until(&run, WLB_VERDICT_BAD_VALUES, 10, bad_gradient_of_6), after[i]);
		assert_int_equal(run.verdicts[0].ranks[0], 6);
		assert_non_null(strstr(run.verdicts[0].evidence, "gradient norm of rank 6"));
		run_end(&run);
	}
	run_begin(&run, 2, 1, 2, 8, 4);
	run_expect_none(&run, ONSET + 20, all_losses_diverge);
	run_end(&run);
}

static void one_nan(const struct run *run, struct wlb_verdict_step *step)
{
	if (step->rank == 3 && run->step == ONSET)
		step->loss = NAN;
}

/* Stages of two ranks, which are too few to be compared by finite values. */
static void a_bad_value_in_a_small_set_is_over_when_values_are_finite_again(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 1, 1, 4, 2, 8);
	run_expect_none(&run, ONSET, one_nan);
	run_step(&run, one_nan);
	assert_int_equal(run_expect_one(&run, WLB_VERDICT_BAD_VALUES, WLB_VERDICT_CONFIRMED)->ranks[0], 3);
	run_steps(&run, 9, one_nan);
	run_expect_one(&run, WLB_VERDICT_BAD_VALUES, WLB_VERDICT_CONFIRMED);
	run_step(&run, one_nan);
	run_expect_one(&run, WLB_VERDICT_BAD_VALUES, WLB_VERDICT_OVER);
	run_expect_none(&run, 50, one_nan);
	run_end(&run);
}

/* Ranks 0 to 5, alone on their nodes, are slow from ONSET on; rank 0 for 60 steps, the others for 120. */
static void six_are_slow_for_a_while(const struct run *run, struct wlb_verdict_step *step)
{
	int64_t steps = step->rank == 0 ? 60 : 120;
	if (step->rank < 6 && run->step >= ONSET && run->step < ONSET + steps)
		step->computed_s *= 1.5;
}

/* There is space for one: more verdicts are open, and end in the same step. */
static void the_end_of_each_verdict_is_told_where_space_is_short(void **state)
{
	enum { SLOW = 6 };
	(void)state;
	struct run run;
	int told[SLOW] = {0};
	run_begin(&run, 1, 1, 1, 32, 1);
	run.space = 1;
	for (int i = 0; i < ONSET + 250; i++) {
		run_step(&run, six_are_slow_for_a_while);
		for (int32_t v = 0; v < run.count && v < run.space; v++)
			told[run.verdicts[v].ranks[0]] += run.verdicts[v].stage == WLB_VERDICT_OVER;
		assert_true(run.step != ONSET + 110 || (told[0] == 1 && run.count == SLOW - 1));
	}
	for (int32_t r = 0; r < SLOW; r++)
		assert_int_equal(told[r], 1);
	assert_int_equal(run.count, 0);
	run_end(&run);
}

/* Step `step` of 1,024 ranks, of which 300 are slow from ONSET on, and rank 900 loses its loss later. */
static void take_large_step(struct wlb_verdict_detector *detector, struct run *random, int64_t step)
{
	for (int32_t r = 0; r < 1024; r++) {
		double slow = r < 300 && step >= ONSET ? 1.5 : 1.0;
		const struct wlb_verdict_step ended = {.rank = r,
		                                       .step = step,
		                                       .seconds = 2.0,
		                                       .computed_s = slow * (1.0 + 0.01 * run_random(random)),
		                                       .work = 1.0,
		                                       .has_loss = 1,
		                                       .loss = r == 900 && step >= ONSET + 20 ? NAN : 2.0};
		assert_int_equal(wlb_verdict_take_step(detector, &ended, NULL), 0);
	}
}

/* More slow nodes than the 256 verdicts that may be open. */
static void many_slow_ranks_do_not_hide_a_bad_value(void **state)
{
	(void)state;
	const struct wlb_verdict_layout layout = {.tp = 1, .cp = 1, .pp = 1, .dp = 1024, .ranks_per_node = 1};
	struct wlb_verdict_world *world = wlb_verdict_world_of_layout(&layout, NULL);
	struct wlb_verdict_detector *detector = wlb_verdict_new(world, NULL, NULL);
	struct wlb_verdict verdict;
	struct run random = {0};
	int32_t count = 0;
	for (int64_t step = 0; step < ONSET + 30; step++) {
		take_large_step(detector, &random, step);
		count = wlb_verdict_judge(detector, (double)step, &verdict, 1);
	}
	assert_int_equal(count, 256);
	assert_int_equal(verdict.kind, WLB_VERDICT_BAD_VALUES);
	assert_int_equal(verdict.ranks[0], 900);
	wlb_verdict_free(detector);
	wlb_verdict_world_free(world);
}

static int take(struct run *run, int32_t rank, int32_t suspects, int32_t first, int32_t other)
{
	const struct wlb_verdict_corruption found = {
		.rank = rank, .step = 40, .suspects = suspects, .first = first, .other = other};
	return wlb_verdict_take_corruption(run->detector, &found, NULL);
}

static void ranks_that_compute_other_bits_are_named(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 8, 4);
	run_seconds(&run, 3);
	assert_int_equal(take(&run, 9, 1, 9, 1), 0);
	run_seconds(&run, 1);
	const struct wlb_verdict *one = run_expect_one(&run, WLB_VERDICT_BAD_VALUES, WLB_VERDICT_CONFIRMED);
	assert_int_equal(one->rank_count, 1);
	assert_int_equal(one->ranks[0], 9);
	assert_int_equal(one->since_step, 40);
	assert_true(one->certainty == 0.99);
	assert_string_equal(one->evidence,
	                    "rank 9 (node 2) computed other bits of a micro-batch than rank 1 (node 0), in "
	                    "the check after step 40: silent data corruption");
	assert_int_equal(take(&run, 9, 1, 9, 1), 0); /* again: the same verdict, which lasts */
	uint64_t id = one->id;
	run_seconds(&run, 30);
	assert_int_equal(run_expect_one(&run, WLB_VERDICT_BAD_VALUES, WLB_VERDICT_CONFIRMED)->id, id);
	run_end(&run);
}

static void ranks_that_are_suspected_together_are_one_verdict(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 8, 4);
	run_seconds(&run, 3);
	assert_int_equal(take(&run, 5, 2, 1, 1), 0);
	run_seconds(&run, 1);
	run_expect_no_verdict(&run); /* the first of them has not reported */
	assert_int_equal(take(&run, 1, 2, 1, 5), 0);
	run_seconds(&run, 1);
	const struct wlb_verdict *both = run_expect_one(&run, WLB_VERDICT_BAD_VALUES, WLB_VERDICT_CONFIRMED);
	assert_int_equal(both->rank_count, 2);
	assert_int_equal(both->ranks[1], 5);
	assert_true(both->certainty < 0.5);
	/* Of the next check, which finds the same, one of them has been reported. */
	const struct wlb_verdict_corruption later = {.rank = 1, .step = 50, .suspects = 2, .first = 1, .other = 5};
	assert_int_equal(wlb_verdict_take_corruption(run.detector, &later, NULL), 0);
	run_seconds(&run, 1);
	assert_int_equal(run_expect_one(&run, WLB_VERDICT_BAD_VALUES, WLB_VERDICT_CONFIRMED)->rank_count, 2);
	run_end(&run);
	run_begin(&run, 2, 1, 2, 8, 4);
	run_seconds(&run, 3);
	assert_int_equal(take(&run, 1, 3, 1, 5), 0);
	assert_int_equal(take(&run, 6, 3, 1, 5), 0);
	run_seconds(&run, 1);
	run_expect_one(&run, WLB_VERDICT_BAD_VALUES, WLB_VERDICT_SUSPECTED); /* one has not reported */
	assert_int_equal(take(&run, 3, 1, 3, 3), 0);
	run_seconds(&run, 1);
	assert_int_equal(run.count, 2);
	assert_non_null(strstr(run.verdicts[1].evidence, "than the second time"));
	run_end(&run);
}

static void corruption_that_makes_no_sense_is_refused(void **state)
{
	(void)state;
	struct run run;
	run_begin(&run, 2, 1, 2, 8, 4);
	run_seconds(&run, 3);
	static const int32_t bad[][4] = {{-1, 1, 0, 0}, {32, 1, 0, 0}, {3, 0, 3, 0},  {3, 33, 3, 0},
	                                 {3, 1, 4, 0},  {3, 1, -1, 0}, {3, 1, 3, -1}, {3, 1, 3, 32}};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(take(&run, bad[i][0], bad[i][1], bad[i][2], bad[i][3]), -1);
	for (int32_t r = 0; r < 32; r++) /* each says that it is the first of all */
		assert_int_equal(take(&run, r, 32, r, 0), 0);
	run_seconds(&run, 1);
	assert_true(run.count <= RUN_VERDICTS);
	run_end(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loaders_and_file_systems_are_told_apart),
		cmocka_unit_test(the_cost_of_a_loader_is_what_others_do_not_wait_anyway),
		cmocka_unit_test(bad_values_are_named),
		cmocka_unit_test(a_bad_value_in_a_small_set_is_over_when_values_are_finite_again),
		cmocka_unit_test(the_end_of_each_verdict_is_told_where_space_is_short),
		cmocka_unit_test(many_slow_ranks_do_not_hide_a_bad_value),
		cmocka_unit_test(ranks_that_compute_other_bits_are_named),
		cmocka_unit_test(ranks_that_are_suspected_together_are_one_verdict),
		cmocka_unit_test(corruption_that_makes_no_sense_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
